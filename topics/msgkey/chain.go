package msgkey

import (
	"fmt"
	"strings"
)

// Names of extractors.
const (
	Header  = "header"  // the explicit key of the header dedup-key
	Auto    = "auto"    // the extractor of the sniffed format
	EDIFACT = "edifact" // UNB of an EDIFACT interchange
	X12     = "x12"     // ISA of an X12 interchange
	UBL     = "ubl"     // a UBL Invoice or CreditNote
	CII     = "cii"     // a CrossIndustryInvoice
	SBDH    = "sbdh"    // a Standard Business Document Header
	AS4     = "as4"     // the UserMessage of an ebMS 3.0 envelope, bare or in MIME
	AS2     = "as2"     // Message-ID and AS2-From, headers
	OFTP2   = "oftp2"   // SFID, or its fields, headers
	SFTP    = "sftp"    // account and file name, headers, and the content
	REST    = "rest"    // Idempotency-Key and X-Client-Id, headers
	JSON    = "json"    // members of a JSON document
	CE      = "ce"      // source and id of a CloudEvent
	CXML    = "cxml"    // payloadID of a cXML document
)

// Message is what extractors read of a record.
type Message struct {
	Value []byte // nil is Kafka's null
	// Header gives the value of a header of a name: with back 0 of the last
	// (topics.Last), with 1 of the one before it, and so on (topics.Nth). nil
	// means that there are no headers. Names are asked for in lower case and
	// match in any case: gateways write them in their own. A header with a
	// null value is there, and blank.
	Header func(name string, back int) (value []byte, found bool)
}

func (m *Message) header(name string) ([]byte, bool) { return m.headerBack(name, 0) }

func (m *Message) headerBack(name string, back int) ([]byte, bool) {
	if m.Header == nil {
		return nil, false
	}
	return m.Header(name, back)
}

// extractor is one entry of the table.
type extractor struct {
	name   string
	format Format // the sniffed format it reads; Unknown: it looks for itself
	utf16  Code   // its answer to that format in UTF-16
	absent Code   // its answer to any other format
	// read gives a key or a code, and whether it found its format: only then
	// its code may become the reason of the whole chain.
	read func(*Message, payload, *settings) (Found, Code, bool)
}

// table lists the extractors: in the order of the documentation, and of one
// format in the order in which auto asks them.
func table() []extractor {
	return []extractor{
		{name: Header, read: fromHeader},
		{name: Auto, read: fromSniffed},
		{name: EDIFACT, format: FormatEDIFACT, utf16: EDIFACTEncoding, absent: EDIFACTNoUNB, read: fromEDIFACT},
		{name: X12, format: FormatX12, utf16: X12Encoding, absent: X12NoISA, read: fromX12},
		{name: UBL, format: FormatXML, utf16: XMLEncoding, absent: XMLNotWellFormed, read: fromUBL},
		{name: CII, format: FormatXML, utf16: XMLEncoding, absent: XMLNotWellFormed, read: fromCII},
		{name: SBDH, format: FormatXML, utf16: XMLEncoding, absent: XMLNotWellFormed, read: fromSBDH},
		{name: AS4, read: fromAS4},
		{name: AS2, read: fromAS2},
		{name: OFTP2, read: fromOFTP2},
		{name: SFTP, read: fromSFTP},
		{name: REST, read: fromREST},
		{name: JSON, format: FormatJSON, utf16: JSONNotJSON, absent: JSONNotJSON, read: fromJSON},
		{name: CE, read: fromCE},
		{name: CXML, format: FormatXML, utf16: XMLEncoding, absent: XMLNotWellFormed, read: fromCXML},
	}
}

// Names lists the extractors there are.
func Names() []string {
	t := table()
	names := make([]string, 0, len(t))
	for _, x := range t {
		names = append(names, x.name)
	}
	return names
}

// Known reports whether name is an extractor of this version.
func Known(name string) bool {
	_, ok := lookUp(name)
	return ok
}

func lookUp(name string) (extractor, bool) {
	for _, x := range table() {
		if x.name == name {
			return x, true
		}
	}
	return extractor{}, false
}

// UnknownError refuses a chain with a name that is no extractor.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown extractor %q; known: %s", e.Name, strings.Join(Names(), " "))
}

// Chain is a list of extractors, tried in order. It is immutable and safe for
// concurrent use; the zero Chain finds no key.
type Chain struct {
	steps []extractor
	with  *settings
}

// NewChain makes a chain of extractors by their names, with the default
// options. The error is an *UnknownError.
func NewChain(names ...string) (Chain, error) { return Options{}.NewChain(names...) }

// NewChain makes a chain of extractors by their names. The error is an
// *UnknownError or an *OptionError.
func (o Options) NewChain(names ...string) (Chain, error) {
	with, err := o.compile()
	if err != nil {
		return Chain{}, err
	}
	steps := make([]extractor, 0, len(names))
	for _, name := range names {
		x, ok := lookUp(name)
		if !ok {
			return Chain{}, &UnknownError{Name: name}
		}
		if name == JSON && len(with.pointers) == 0 {
			return Chain{}, &OptionError{"JSONPointers", "", "the extractor json needs at least one, as /orderId"}
		}
		steps = append(steps, x)
	}
	return Chain{steps: steps, with: with}, nil
}

// Extract gives the first key. When all extractors fail it gives the code of
// the first that found its format (a blank dedup-key counts, and so does an
// empty payload where an extractor wanted one), else KeyNotFound.
func (c Chain) Extract(m *Message) (Found, Code) {
	var p payload
	var cleaned bool
	reason := KeyNotFound
	for i := range c.steps {
		x := &c.steps[i]
		if !cleaned && x.name != Header {
			p, cleaned = clean(m.Value), true
		}
		f, code, found := x.extract(m, p, c.with)
		if code == "" {
			return f, ""
		}
		if found && reason == KeyNotFound {
			reason = code
		}
	}
	return Found{}, reason
}

// Attempt is what one extractor made of a message.
type Attempt struct {
	Extractor string // as named in the chain
	Found     Found  // if Code is ""
	Code      Code   // its own, also where it did not find its format
	// Fields are what the key is made of, in its order; Date is what with_date adds to
	// it, without a Value where there is none.
	Fields []KeyField
	Date   KeyField
}

// Attempts shows every extractor of the chain, those behind the first key too.
// It is for people who ask why; the filter uses Extract.
func (c Chain) Attempts(m *Message) []Attempt {
	p := clean(m.Value)
	attempts := make([]Attempt, 0, len(c.steps))
	for i := range c.steps {
		f, code, _ := c.steps[i].extract(m, p, c.with)
		a := Attempt{Extractor: c.steps[i].name, Found: f, Code: code}
		if code == "" {
			a.located(m, p, c.with)
		}
		attempts = append(attempts, a)
	}
	return attempts
}

func (x *extractor) extract(m *Message, p payload, with *settings) (Found, Code, bool) {
	switch {
	case x.format == Unknown:
	case p.format == Empty:
		return Found{}, EmptyPayload, true
	case p.format != x.format:
		return Found{}, x.absent, false
	case p.utf16:
		return Found{}, x.utf16, true
	}
	f, code, found := x.read(m, p, with)
	if code == "" && f.Extractor == "" {
		f.Extractor = x.name
	}
	return f, code, found
}

// fromSniffed is the extractor "auto": a chain of those of the sniffed format,
// in the table's order. The first key wins; else it gives the code of the first
// that found its format.
func fromSniffed(m *Message, p payload, with *settings) (Found, Code, bool) {
	switch p.format {
	case Empty:
		return Found{}, EmptyPayload, true
	case FormatTradacoms:
		return Found{}, TradacomsNotSupported, true
	case FormatHL7:
		return Found{}, HL7NotSupported, true
	case Unknown:
		return Found{}, KeyNotFound, false
	case FormatEDIFACT, FormatX12, FormatXML, FormatJSON, FormatMIME:
	}
	reason, anyFound := KeyNotFound, false
	for i := range with.sniffed {
		x := &with.sniffed[i]
		if x.format != p.format {
			continue
		}
		f, code, found := x.extract(m, p, with)
		if code == "" {
			return f, "", true
		}
		if found && !anyFound {
			reason, anyFound = code, true
		}
	}
	return Found{}, reason, anyFound
}
