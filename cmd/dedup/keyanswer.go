package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"dedupledger/internal/app/config"
	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
	"dedupledger/ledger"
	"dedupledger/topics"
	"dedupledger/topics/msgkey"
)

// keyed is what `dedup key` found in a message.
type keyed struct {
	File      string `json:"file,omitempty"`
	Key       string `json:"key,omitempty"`
	Code      string `json:"code,omitempty"` // why there is no key
	Extractor string `json:"extractor,omitempty"`
	SHA256    string `json:"sha256"` // of the bytes as they are
	Size      int    `json:"size"`
	// ControlNumbers are those of a file that holds several interchanges.
	ControlNumbers []string `json:"controlNumbers,omitempty"`

	Flow *keyedFlow `json:"flow,omitempty"`
}

// keyedFlow is what the rules of a flow make of it (--scope).
type keyedFlow struct {
	Scope           string             `json:"scope"`
	LedgerScope     string             `json:"ledgerScope"`
	Window          string             `json:"window,omitempty"`
	Aliases         []string           `json:"aliases"`
	HashMode        string             `json:"hashMode"` // raw: there is no hash of a canonical form
	CanonicalSHA256 string             `json:"canonicalSha256,omitempty"`
	Tried           []triedExtractor   `json:"tried"`
	Settings        []explainedSetting `json:"settings"`
}

// triedExtractor is what one extractor said.
type triedExtractor struct {
	Extractor string     `json:"extractor"`
	Alias     bool       `json:"alias,omitempty"` // of the setting aliases
	Key       string     `json:"key,omitempty"`
	Taken     bool       `json:"taken,omitempty"` // the first key of the chain
	Code      string     `json:"code,omitempty"`
	Fields    []keyField `json:"fields,omitempty"`
}

// keyField is one of the fields of a key, and where it stands: in a header, or from an
// octet of the file on. It has neither where it is made of the content or unpacked.
type keyField struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Header string `json:"header,omitempty"`
	Offset *int   `json:"offset,omitempty"`
}

func newKeyed(found msgkey.Found, code msgkey.Code, value []byte) *keyed {
	sum := msgkey.PayloadSHA256(value)
	k := &keyed{Key: found.Key, Code: string(code), Extractor: found.Extractor, SHA256: hex.EncodeToString(sum[:]), Size: len(value)}
	if isSeveral(code) {
		k.ControlNumbers = msgkey.Interchanges(value)
	}
	return k
}

// isSeveral tells the codes of a file that holds several interchanges.
func isSeveral(code msgkey.Code) bool {
	return code == msgkey.EDIFACTMultipleInterchanges || code == msgkey.X12MultipleInterchanges
}

// flowAsker asks by the rules of a flow.
func (p *program) flowAsker(f *keyFlags, header headerFunc) (func([]byte) *keyed, error) {
	e, err := p.explain()
	if err != nil {
		return nil, err
	}
	scope, err := topics.ParseScope(f.scope)
	if err != nil {
		return nil, err //nolint:wrapcheck // it was read before
	}
	if _, known := e.Set.Flow(f.scope); !known {
		return nil, fmt.Errorf("%s: no rule speaks of this flow and builtin_rules is false: its records are INVALID %s", f.scope, rules.FlowUnknown)
	}
	renamed := func(name string, back int) ([]byte, bool) { return header(e.Input.Name(name), back) }
	return func(value []byte) *keyed {
		tried := rules.NewKeyer(e.Set).Try(scope, value, renamed)
		return keyedOf(e, f.scope, &tried, value)
	}, nil
}

func keyedOf(e *config.Effective, scope string, t *rules.Tried, value []byte) *keyed {
	var first msgkey.Found
	flow := &keyedFlow{Scope: scope, LedgerScope: t.Keyed.Key.Scope, Aliases: append([]string{}, t.Keyed.Aliases...), HashMode: t.Keyed.HashMode}
	for i := range t.Chain {
		tried := triedOf(e, &t.Chain[i])
		if tried.Code == "" && first.Key == "" {
			first, tried.Taken = t.Chain[i].Found, true
		}
		flow.Tried = append(flow.Tried, tried)
	}
	for i := range t.Aliases {
		tried := triedOf(e, &t.Aliases[i])
		tried.Alias = true
		flow.Tried = append(flow.Tried, tried)
	}
	if t.Keyed.HashMode != ledger.HashRaw {
		flow.CanonicalSHA256 = hex.EncodeToString(t.Keyed.CanonicalSHA256[:])
	}
	if t.Keyed.Code == "" {
		flow.Window = setting.FormatDuration(t.Keyed.Key.Window)
	}
	settings, _ := e.Set.Explain(scope, first.Key) // of a flow that is known
	flow.Settings = flowOf(e.Set, scope, first.Key, settings).Settings
	k := newKeyed(first, msgkey.Code(t.Keyed.Code), value)
	k.Key, k.Flow = t.Keyed.Key.Key, flow // with its date
	// Also where the chain has gone on behind it, to the number of the transport.
	if slices.ContainsFunc(t.Chain, func(a msgkey.Attempt) bool { return isSeveral(a.Code) }) {
		k.ControlNumbers = msgkey.Interchanges(value)
	}
	return k
}

func triedOf(e *config.Effective, a *msgkey.Attempt) triedExtractor {
	t := triedExtractor{Extractor: a.Extractor, Key: a.Found.Key, Code: string(a.Code)}
	if a.Code != "" {
		return t
	}
	if a.Found.Extractor != a.Extractor {
		t.Extractor += ": " + a.Found.Extractor // what auto has chosen
	}
	for i := range a.Fields {
		t.Fields = append(t.Fields, fieldOf(e, &a.Fields[i]))
	}
	if date := a.Date; date.Value != "" {
		date.Name += ", in the key with with_date"
		t.Fields = append(t.Fields, fieldOf(e, &date))
	}
	return t
}

// fieldOf names a header as the configuration calls it.
func fieldOf(e *config.Effective, f *msgkey.KeyField) keyField {
	k := keyField{Name: f.Name, Value: f.Value}
	if f.Header != "" {
		k.Header = e.Input.Name(f.Header)
		if _, is := strings.CutPrefix(f.Name, "header "); is {
			k.Name = "header " + k.Header
		}
	}
	if f.Offset != msgkey.Nowhere {
		k.Offset = &f.Offset
	}
	return k
}

// text is the field with its place, as "UNB 0020 control reference, byte 57: 77001".
func (f *keyField) text() string {
	name := f.Name
	switch {
	case f.Offset != nil:
		name += fmt.Sprintf(", byte %d", *f.Offset)
	case f.Header != "" && name != "header "+f.Header:
		name += ", header " + f.Header
	}
	return name + ": " + f.Value
}

// printKeyed writes one answer; a key with the name of its file where there are
// several.
func (p *program) printKeyed(k *keyed, several bool) error {
	if p.output == outputLines {
		line := json.NewEncoder(p.stdout)
		line.SetEscapeHTML(false)
		if err := line.Encode(k); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
		return nil
	}
	return p.print(k, func(w io.Writer) error { return k.print(w, several) })
}

func (k *keyed) print(w io.Writer, several bool) error {
	name := ""
	if several {
		name = k.File + "\t"
	}
	var err error
	switch {
	case k.Flow != nil:
		return k.printFlow(w, several)
	case k.Key != "":
		_, err = fmt.Fprintf(w, "%s%s\n", name, k.Key)
	case len(k.ControlNumbers) > 0:
		_, err = fmt.Fprintf(w, "%s%d interchanges, control numbers %s\n", name, len(k.ControlNumbers), strings.Join(k.ControlNumbers, " "))
	}
	return err //nolint:wrapcheck // wrapped by print
}

func (k *keyed) printFlow(w io.Writer, several bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(t, "%s\t%s\n", name, value) // Flush has the error
		}
	}
	if several {
		row("file", k.File)
	}
	row("flow", k.Flow.Scope)
	row("key", k.Key)
	row("no key", k.Code)
	row("control numbers", strings.Join(k.ControlNumbers, " "))
	row("aliases", strings.Join(k.Flow.Aliases, " "))
	row("ledger scope", k.Flow.LedgerScope)
	row("window", k.Flow.Window)
	row("sha256", fmt.Sprintf("%s of %d bytes", k.SHA256, k.Size))
	if k.Flow.CanonicalSHA256 != "" {
		row(k.Flow.HashMode, k.Flow.CanonicalSHA256)
	}
	_, _ = fmt.Fprintln(t, "\ntried\tgives") // likewise
	for _, x := range k.Flow.Tried {
		row(x.name(), x.Key+x.Code)
		for _, f := range x.Fields {
			row("", "  "+f.text())
		}
	}
	_, _ = fmt.Fprintln(t, "\nsetting\tvalue\tfrom\trule") // likewise
	for _, s := range k.Flow.Settings {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, valueText(s.Value), s.From, strings.TrimSpace(s.ruleText()+" "+keysText(s.Keys)))
	}
	_, _ = fmt.Fprintln(t) // likewise
	return t.Flush()       //nolint:wrapcheck // wrapped by print
}

func (x *triedExtractor) name() string {
	switch {
	case x.Alias:
		return "alias " + x.Extractor
	case x.Taken:
		return x.Extractor + " (the key)"
	}
	return x.Extractor
}

func keysText(glob string) string {
	if glob == "*" {
		return ""
	}
	return glob
}
