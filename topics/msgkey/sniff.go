package msgkey

import "bytes"

// Format is what a payload looks like from its first octets.
type Format string

// The formats. Unknown is none of them.
const (
	Unknown            Format = ""
	Empty              Format = "empty" // null, or nothing but blanks
	FormatEDIFACT      Format = "edifact"
	FormatX12          Format = "x12"
	FormatXML          Format = "xml"
	FormatJSON         Format = "json"
	FormatMIME         Format = "mime"
	FormatTradacoms    Format = "tradacoms" // recognised, not supported
	FormatHL7          Format = "hl7"       // recognised, not supported
	maxMIMEHeader             = 64 << 10    // how far a blank line is looked for
	leadingBlanks             = " \t\r\n\x00"
	utf16Look                 = 64 // code units looked at behind a UTF-16 byte order mark
	utf8ByteOrderMark         = "\xEF\xBB\xBF"
	utf16BigEndianMark        = "\xFE\xFF"
	utf16LittleEndianM        = "\xFF\xFE"
)

// payload is a value after the clean-up.
type payload struct {
	data   []byte // without byte order mark and leading blanks; of UTF-16 as received
	format Format
	root   []byte // local name of XML's root element, if it can be told at a glance
	utf16  bool   // is UTF-16: its format is known, its key is not read
}

// Sniff tells the format of a value. EDIFACT covers its interactive form (UIB).
func Sniff(value []byte) Format { return clean(value).format }

// clean strips one UTF-8 byte order mark and leading blanks, then sniffs.
func clean(value []byte) payload {
	if narrowed, ok := narrow(value); ok {
		return payload{data: value, format: sniff(narrowed), utf16: true}
	}
	data := bytes.TrimPrefix(value, []byte(utf8ByteOrderMark))
	data = bytes.TrimLeft(data, leadingBlanks)
	// UTF-16 without a mark, in either order, as its leading NUL is gone.
	wide := bytes.HasPrefix(data, []byte("<\x00"))
	p := payload{data: data, format: sniff(data), utf16: wide}
	if p.format == FormatXML {
		p.root = rootName(data)
	}
	return p
}

func sniff(data []byte) Format {
	if len(data) == 0 {
		return Empty
	}
	switch data[0] {
	case '<':
		return FormatXML
	case '{', '[':
		return FormatJSON
	}
	switch string(data[:min(3, len(data))]) {
	case "UNA", "UNB", "UIB":
		return FormatEDIFACT
	case "ISA":
		return FormatX12
	}
	switch string(data[:min(4, len(data))]) {
	case "STX=":
		return FormatTradacoms
	case "MSH|":
		return FormatHL7
	}
	if bytes.HasPrefix(data, []byte("--")) || headerLines(data) {
		return FormatMIME
	}
	return Unknown
}

// headerLines reports whether data begins with header fields and a blank line
// (RFC 5322 §2.2), as in a MIME entity.
func headerLines(data []byte) bool {
	data = data[:min(len(data), maxMIMEHeader)]
	for first := true; ; first = false {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return false
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			return !first
		}
		folded := line[0] == ' ' || line[0] == '\t'
		if folded && first || !folded && !fieldName(line) {
			return false
		}
		data = rest
	}
}

func fieldName(line []byte) bool {
	for i, c := range line {
		if c == ':' {
			return i > 0
		}
		if c <= ' ' || c >= 0x7F {
			return false
		}
	}
	return false
}

// narrow gives the first characters of UTF-16 text as octets, enough to sniff
// it. What is no ASCII becomes 0xFF; ok is false without a UTF-16 mark.
func narrow(value []byte) (data []byte, ok bool) {
	big := bytes.HasPrefix(value, []byte(utf16BigEndianMark))
	if !big && !bytes.HasPrefix(value, []byte(utf16LittleEndianM)) {
		return nil, false
	}
	high, low := 1, 0
	if big {
		high, low = 0, 1
	}
	for i := 2; i+1 < len(value) && len(data) < utf16Look; i += 2 {
		c := value[i+low]
		if value[i+high] != 0 {
			c = 0xFF
		}
		if len(data) > 0 || bytes.IndexByte([]byte(leadingBlanks), c) < 0 {
			data = append(data, c)
		}
	}
	return data, true
}
