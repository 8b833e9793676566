package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dedupledger/topics/msgkey"
)

// maxMessage bounds what is read; Kafka's own limit on a record is below.
const maxMessage = 1 << 30

// keyed is what `dedup key` found.
type keyed struct {
	Key       string `json:"key"`
	Extractor string `json:"extractor"`
	SHA256    string `json:"sha256"` // of the bytes as they are
	Size      int    `json:"size"`
}

func newKey(p *program) *cobra.Command {
	var format string
	var headers []string
	c := &cobra.Command{
		Use:   "key [flags] FILE|-",
		Short: "message -> dedup key and payload hash",
		Long: "Prints the dedup key of a message as the filter would find it, and nothing else (-o json: the\n" +
			"extractor, size and SHA-256 of the payload too). It reads no rules: a date that with_date adds is\n" +
			"not in it. Without a key it exits with 1 and prints the closed code alone to stderr.",
		Example: "  dedup key invoice.edi\n" +
			"  dedup key --format edifact - < invoice.edi\n" +
			"  dedup key --header dedup-key=ORDER-4711 -o json message.bin",
		Annotations: map[string]string{heading: underAsk, opens: opensNone},
		Args:        arguments(oneMessage),
		RunE: func(c *cobra.Command, args []string) error {
			chain, err := chainOf(format)
			if err != nil {
				return usage(c, err)
			}
			header, err := lookUp(headers)
			if err != nil {
				return usage(c, err)
			}
			value, err := p.read(args[0])
			if err != nil {
				return err
			}
			found, code := extract(chain, format, &msgkey.Message{Value: value, Header: header})
			if code != "" {
				return bareError(code)
			}
			return p.printKey(found, value)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&format, "format", msgkey.Auto, "`F`: "+strings.Join(msgkey.Names(), ", ")+
		"; auto takes a dedup-key header first, then what the payload looks like")
	c.Flags().StringArrayVar(&headers, "header", nil, "record header `K=V`; may be repeated, the last of a name counts")
	return c
}

// extract asks the chain; of a single named format it gives that extractor's own
// code, where a chain would say that nobody found its format.
func extract(chain msgkey.Chain, format string, m *msgkey.Message) (msgkey.Found, msgkey.Code) {
	if format == msgkey.Auto {
		return chain.Extract(m)
	}
	only := chain.Attempts(m)[0]
	return only.Found, only.Code
}

func oneMessage(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d messages: name one FILE, or - for stdin", len(args))
	}
	return nil
}

func (p *program) printKey(found msgkey.Found, value []byte) error {
	sum := msgkey.PayloadSHA256(value)
	answer := keyed{Key: found.Key, Extractor: found.Extractor, SHA256: hex.EncodeToString(sum[:]), Size: len(value)}
	return p.print(answer, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, answer.Key)
		return err
	})
}

// chainOf is the chain of the last built-in rule for auto, else the one
// extractor.
func chainOf(format string) (msgkey.Chain, error) {
	names := []string{format}
	if format == msgkey.Auto {
		names = []string{msgkey.Header, msgkey.Auto}
	}
	chain, err := msgkey.NewChain(names...)
	if err != nil {
		return msgkey.Chain{}, fmt.Errorf("--format: %w", err)
	}
	return chain, nil
}

// lookUp answers as a record's headers do: counted from the last of a name, in
// any case.
func lookUp(headers []string) (func(string, int) ([]byte, bool), error) {
	for _, h := range headers {
		if name, _, ok := strings.Cut(h, "="); !ok || name == "" {
			return nil, fmt.Errorf("--header %q: write NAME=VALUE", h)
		}
	}
	return func(wanted string, back int) ([]byte, bool) {
		for _, h := range slices.Backward(headers) {
			name, value, _ := strings.Cut(h, "=")
			if !strings.EqualFold(name, wanted) {
				continue
			}
			if back == 0 {
				return []byte(value), true
			}
			back--
		}
		return nil, false
	}, nil
}

// read takes a whole file, or stdin for "-".
func (p *program) read(name string) ([]byte, error) {
	in := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("opening the message: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	value, err := io.ReadAll(io.LimitReader(in, maxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("reading the message: %w", err)
	}
	if len(value) > maxMessage {
		return nil, errors.New("the message is larger than 1GiB")
	}
	return value, nil
}
