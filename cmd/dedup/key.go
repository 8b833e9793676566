package main

import (
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

// headerPointers stands for json_pointers where no rules are read.
const headerPointers = "x-dedup-pointers"

// keyFlags are what `dedup key` is told of the messages.
type keyFlags struct {
	format, scope string
	headers       []string
	lenient       bool
}

func newKey(p *program) *cobra.Command {
	var f keyFlags
	c := &cobra.Command{
		Use:   "key [flags] FILE...|-",
		Short: "message -> dedup key and payload hash",
		Long: "Prints the dedup key of each message as the filter would find it, and nothing else (-o json, and for\n" +
			"many files -o jsonl: the extractor, size and SHA-256 of the payload too). Without --scope it reads no\n" +
			"rules: a date that with_date adds is not in the key. For a file without a key it exits with 1 and\n" +
			"prints the closed code alone to stderr, of several files behind each one's name. Of a file with several\n" +
			"interchanges it lists their control numbers.\n\n" +
			"With --scope it reads the configuration and shows what the rules of that flow make of the message: every\n" +
			"extractor tried, what the key is made of and where that stands (the header, or the byte of the file,\n" +
			"counted from 0), aliases, hashes, and the line of each setting.\n\n" +
			"--format json takes its pointers from --header " + headerPointers + "='/order/id /seller'.",
		Example: "  dedup key invoice.edi\n" +
			"  dedup key --format as2 --header Message-ID='<1@x>' --header AS2-From=ACME message.bin\n" +
			"  dedup key -o jsonl inbox/*.edi\n" +
			"  dedup key --scope acme:as4 --header content-type='multipart/related' message.mime -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underAsk, opens: opensNone, formats: outputTable + " " + outputJSON + " " + outputLines},
		Args:        arguments(someMessages),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.scope != "" && (f.lenient || c.Flags().Changed("format")):
				return usage(c, errors.New("--scope takes the flow's own chain and options: leave out --format and --lenient"))
			case p.output == outputJSON && len(args) > 1:
				return usage(c, fmt.Errorf("--output json is for one file, and here are %d: write -o jsonl", len(args)))
			}
			header, err := lookUp(f.headers)
			if err != nil {
				return usage(c, err)
			}
			ask, err := p.asker(c, &f, header)
			if err != nil {
				return err
			}
			return p.keysOf(args, ask)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&f.format, "format", msgkey.Auto, "`F`: "+strings.Join(msgkey.Names(), ", ")+
		"; auto takes a dedup-key header first, then what the payload looks like")
	c.Flags().StringArrayVar(&f.headers, "header", nil, "record header `K=V`; may be repeated, the last of a name counts")
	c.Flags().BoolVar(&f.lenient, "lenient", false, "do not look at trailers, as a rule with lenient: true")
	c.Flags().StringVar(&f.scope, "scope", "", "`TENANT:FLOW` whose rules are to be shown at work")
	return c
}

// asker gives the answer about a message: of a flow, or of a format.
func (p *program) asker(c *cobra.Command, f *keyFlags, header headerFunc) (func([]byte) *keyed, error) {
	if f.scope != "" {
		if err := oneFlow(c, []string{f.scope}); err != nil {
			return nil, usage(c, fmt.Errorf("--scope: %w", err))
		}
		return p.flowAsker(f, header)
	}
	chain, err := f.chain(header)
	if err != nil {
		return nil, usage(c, err)
	}
	return func(value []byte) *keyed {
		found, code := extract(chain, f.format, &msgkey.Message{Value: value, Header: header})
		return newKeyed(found, code, value)
	}, nil
}

// keysOf answers for one file after the other. A file that cannot be read ends it.
func (p *program) keysOf(files []string, ask func([]byte) *keyed) error {
	failed := false
	for _, name := range files {
		value, err := p.read(name)
		if err != nil {
			return err
		}
		answer := ask(value)
		if len(files) > 1 || p.output == outputLines {
			answer.File = name
		}
		if err := p.printKeyed(answer, len(files) > 1); err != nil {
			return err
		}
		switch {
		case answer.Code == "":
		case len(files) == 1:
			return bareError(answer.Code)
		default:
			p.note("%s: %s", name, answer.Code)
			failed = true
		}
	}
	if failed {
		return errSaid
	}
	return nil
}

// errSaid ends with exit code 1 after all was said.
var errSaid = bareError("")

// extract asks the chain; of a single named format it gives that extractor's own
// code, where a chain would say that nobody found its format.
func extract(chain msgkey.Chain, format string, m *msgkey.Message) (msgkey.Found, msgkey.Code) {
	if format == msgkey.Auto {
		return chain.Extract(m)
	}
	only := chain.Attempts(m)[0]
	return only.Found, only.Code
}

func someMessages(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("0 messages: name FILEs, or - for stdin")
	}
	return nil
}

// chain is that of the last built-in rule for auto, else the one extractor.
func (f *keyFlags) chain(header headerFunc) (msgkey.Chain, error) {
	if f.format == "cloudevents" {
		f.format = msgkey.CE
	}
	names := []string{f.format}
	if f.format == msgkey.Auto {
		names = []string{msgkey.Header, msgkey.Auto}
	}
	options := msgkey.Options{Lenient: f.lenient}
	if pointers, told := header(headerPointers, 0); told {
		options.JSONPointers = strings.Fields(string(pointers))
	}
	chain, err := options.NewChain(names...)
	refused, isOption := errors.AsType[*msgkey.OptionError](err)
	switch {
	case err == nil:
		return chain, nil
	case isOption && refused.Value == "":
		return msgkey.Chain{}, fmt.Errorf("--format json: which members? Write --header %s='/order/id', or ask with --scope for a flow that has json_pointers", headerPointers)
	case isOption:
		return msgkey.Chain{}, fmt.Errorf("--header %s %q: %s", headerPointers, refused.Value, refused.Why)
	default:
		return msgkey.Chain{}, fmt.Errorf("--format: %w", err)
	}
}

// headerFunc gives a record's headers, as msgkey.Message asks for them.
type headerFunc = func(name string, back int) ([]byte, bool)

// lookUp answers as a record's headers do: counted from the last of a name, in
// any case.
func lookUp(headers []string) (headerFunc, error) {
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
