package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/app"
	"dedupledger/internal/tail"
	"dedupledger/topics/acl"
)

func newTopicsTail(p *program) *cobra.Command {
	var o tail.Options
	c := &cobra.Command{
		Use:   "tail TOPIC...",
		Short: "the last records of topics, headers first",
		Long: "Shows the last committed records of the topics, raw ones or outputs, over all partitions in the order\n" +
			"of their times: place, time, record key and headers; with -v the payload too, of large ones the first\n" +
			"64 KiB. Control characters are escaped. With -o jsonl each record is one line of JSON. With -f\n" +
			"partitions that are added meanwhile are followed, too. Of the configuration it needs kafka.brokers.",
		Example:     "  dedup topics tail duplicates dead-letter -n 5 -v -c /etc/dedup.yaml\n  dedup topics tail clean.as2 -f -o jsonl -c /etc/dedup.yaml",
		Annotations: map[string]string{formats: outputTable + " " + outputLines},
		Args:        arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Last < 0 || o.Last > tail.MaxLast {
				return usage(c, fmt.Errorf("--lines %d: write 0 to %d", o.Last, tail.MaxLast))
			}
			cfg, err := p.load("kafka.brokers")
			if err != nil {
				return err
			}
			o.Topics, o.Payload = args, p.verbose
			o.Who = acl.Principal{Name: cfg.Kafka.Principal(), Bootstrap: strings.Join(cfg.Kafka.Brokers, ",")}
			o.Client = append(app.KafkaOptions(cfg.Kafka), kgo.ClientID("dedup-ledger-tail"))
			show := showText
			if p.output == outputLines {
				show = showJSON
			}
			err = tail.Run(c.Context(), o, func(r tail.Record) error { return show(p.stdout, &r) })
			if err != nil && c.Context().Err() != nil && errors.Is(err, c.Context().Err()) {
				return nil // Ctrl-C is how it is ended
			}
			return app.ExplainKafka(cfg.Kafka, err)
		},
	}
	c.Flags().IntVarP(&o.Last, "lines", "n", 10, "`N` records, at most 1000")
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	return c
}

// showText writes a record for people.
func showText(w io.Writer, r *tail.Record) error {
	var b strings.Builder
	size := strconv.Itoa(r.Size) + " bytes"
	if r.Size < 0 {
		size = "null"
	}
	key := "null"
	if r.Key != nil {
		key = escape(r.Key, false)
	}
	fmt.Fprintf(&b, "%s/%d/%d  %s  key %s  value %s\n", r.Topic, r.Partition, r.Offset, timeText(r.Timestamp), key, size)
	for _, h := range r.Headers {
		value := "null"
		if h.Value != nil {
			value = escape(h.Value, false)
		}
		fmt.Fprintf(&b, "  %s: %s\n", escape([]byte(h.Key), false), value)
	}
	if len(r.Value) > 0 {
		b.WriteString("  | " + strings.ReplaceAll(escape(r.Value, true), "\n", "\n  | ") + "\n")
		if more := r.Size - len(r.Value); more > 0 {
			fmt.Fprintf(&b, "  (%d bytes more)\n", more)
		}
	}
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	return nil
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// escape writes what could move a terminal's cursor, or is no UTF-8, as \x1b. A
// payload keeps its lines.
func escape(text []byte, lines bool) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\\' || strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}

// tailed is a record for machines. What is no UTF-8 is in Base64.
type tailed struct {
	Place         string         `json:"place"`
	Timestamp     string         `json:"timestamp"`
	Key           *string        `json:"key"`
	KeyBase64     []byte         `json:"keyBase64,omitempty"`
	Headers       []tailedHeader `json:"headers"`
	Size          int            `json:"size"` // -1: null
	Payload       *string        `json:"payload,omitempty"`
	PayloadBase64 []byte         `json:"payloadBase64,omitempty"`
}

type tailedHeader struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Base64 []byte  `json:"valueBase64,omitempty"`
}

// text is the bytes as a string, or in Base64, or neither where they are null.
func jsonText(b []byte) (text *string, base64 []byte) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		s := string(b)
		return &s, nil
	default:
		return nil, b
	}
}

func showJSON(w io.Writer, r *tail.Record) error {
	t := tailed{
		Place:     fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset),
		Timestamp: timeText(r.Timestamp), Headers: []tailedHeader{}, Size: r.Size,
	}
	t.Key, t.KeyBase64 = jsonText(r.Key)
	if len(r.Value) > 0 {
		t.Payload, t.PayloadBase64 = jsonText(r.Value)
	}
	for _, h := range r.Headers {
		out := tailedHeader{Name: h.Key}
		out.Value, out.Base64 = jsonText(h.Value)
		t.Headers = append(t.Headers, out)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	return nil
}
