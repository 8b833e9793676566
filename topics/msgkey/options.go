package msgkey

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Options are the settings of a chain that make keys: with other options the
// same record may get another key, so they belong to a rule's fingerprint. The
// zero value is the documented default of every format. NewChain keeps what it
// needs; an Options may be used for several chains and must not be changed.
type Options struct {
	// Lenient skips the check of the trailer in EDIFACT (UNZ), X12 (IEA) and
	// AS4 (the closing delimiter of MIME), and takes an X12 ISA that is not padded, ISA13 of 1 to 9 digits
	// included. A truncated file may then take the key of the complete one.
	Lenient bool

	// Sellers is which identifiers of a UBL or CII seller are read, in order;
	// the first that is there counts. Empty is DefaultSellers.
	Sellers []Seller
	// SharedInvoices writes keys of UBL and CII under the one scheme "inv", so
	// that an invoice in both syntaxes has one key.
	SharedInvoices bool

	// CXMLOrder adds the From identity and the orderID to a cXML key, for
	// senders whose payloadID is weak (a bare timestamp).
	CXMLOrder bool

	// EDIFACTMessages adds 0062 and 0065 of every UNH, for messages that were
	// split before the filter.
	EDIFACTMessages bool
	// X12Level adds the groups, or groups and transaction sets, of an X12
	// interchange that was split before the filter.
	X12Level X12Level

	// JSONPointers are the RFC 6901 pointers of the extractor "json", in the
	// key's order.
	JSONPointers []string
	// FilePattern is a regular expression (RE2) with capture groups over the
	// base name of an SFTP file; its groups identify the file. Empty: the name
	// and the content's hash do.
	FilePattern string
	// OFTP1Dates takes OFTP 1's dates (YYMMDD) and times (HHMMSS) too.
	OFTP1Dates bool
}

// Seller is a kind of identifier of an invoice's seller, as written in the key.
type Seller string

// The kinds of seller identifiers, by their business term in EN 16931.
const (
	SellerVAT          Seller = "vat" // BT-31
	SellerRegistration Seller = "reg" // BT-30
	SellerID           Seller = "id"  // BT-29
	SellerEndpoint     Seller = "ep"  // BT-34
)

// sellerKinds is how many there are.
const sellerKinds = 4

// DefaultSellers is the order in which identifiers of a seller are looked for.
func DefaultSellers() []Seller {
	return []Seller{SellerVAT, SellerRegistration, SellerID, SellerEndpoint}
}

// X12Level is how far an X12 key goes down.
type X12Level string

// The levels. The zero value is the interchange alone.
const (
	X12Interchange  X12Level = ""
	X12Groups       X12Level = "group"       // GS01, GS02, GS03 and GS06 of every group
	X12Transactions X12Level = "transaction" // and ST01 and ST02 of every transaction set
)

// OptionError refuses an option.
type OptionError struct {
	Option string // as the field is named in Options
	Value  string
	Why    string // what is wrong, and what to write
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s %q: %s", e.Option, e.Value, e.Why) }

// settings is Options made ready, once for a chain.
type settings struct {
	Options

	sniffed     []extractor // what auto chooses from
	filePattern *regexp.Regexp
	pointers    []pointer
}

func (o Options) compile() (*settings, error) {
	s := &settings{Options: o}
	if len(s.Sellers) == 0 {
		s.Sellers = DefaultSellers()
	}
	for i, k := range s.Sellers {
		if !slices.Contains(DefaultSellers(), k) {
			return nil, &OptionError{"Sellers", string(k), "no such identifier; write " + sellerNames()}
		}
		if slices.Contains(s.Sellers[:i], k) {
			return nil, &OptionError{"Sellers", string(k), "named twice"}
		}
	}
	switch o.X12Level {
	case X12Interchange, X12Groups, X12Transactions:
	default:
		return nil, &OptionError{"X12Level", string(o.X12Level), "no such level; write group or transaction, or leave it out"}
	}
	if err := s.compilePattern(); err != nil {
		return nil, err
	}
	for _, text := range o.JSONPointers {
		p, why := parsePointer(text)
		if why != "" {
			return nil, &OptionError{"JSONPointers", text, why}
		}
		s.pointers = append(s.pointers, p)
	}
	for _, x := range table() {
		switch {
		case x.format != Unknown:
			s.sniffed = append(s.sniffed, x)
		case x.name == AS4: // it reads two formats
			x.utf16, x.format = XMLEncoding, FormatXML
			s.sniffed = append(s.sniffed, x)
			x.format = FormatMIME
			s.sniffed = append(s.sniffed, x)
		}
	}
	return s, nil
}

func sellerNames() string {
	names := make([]string, 0, sellerKinds)
	for _, k := range DefaultSellers() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func (s *settings) compilePattern() error {
	if s.FilePattern == "" {
		return nil
	}
	re, err := regexp.Compile(s.FilePattern)
	if err != nil {
		return &OptionError{"FilePattern", s.FilePattern, err.Error()}
	}
	if re.NumSubexp() == 0 {
		return &OptionError{"FilePattern", s.FilePattern, "has no capture group; put what identifies the file in parentheses"}
	}
	s.filePattern = re
	return nil
}
