package msgkey

import (
	"bytes"
	"unicode/utf8"
)

// Bounds of an ISA that is not padded.
const (
	looseElements = 15 // in front of ISA16
	looseLength   = 20 // octets of one
	controlDigits = 9  // of ISA13
)

// readLooseISA takes an ISA whose elements are not of their fixed width: it
// counts separators. ISA16 is one octet, and the terminator stands behind it.
// ISA13 has 1 to 9 digits and is padded with zeros, as it would be in a strict
// ISA. The codes are those of the strict reader.
func readLooseISA(data []byte) (h isa, body []byte, code Code) {
	if len(data) <= isaElement {
		return readISA(data)
	}
	h, body, component, ok := splitISA(data)
	if !ok { // wrapped at 80 columns
		if h, body, component, ok = splitISA(unwrap(data)); !ok {
			return readISA(data)
		}
	}
	if c := h.element; alphanumeric(c) || c == ' ' || c == '\r' || c == '\n' {
		return isa{}, nil, X12BadSeparators
	}
	if n := len(h.control); n == 0 || n > controlDigits {
		return isa{}, nil, X12BadControlNumber
	}
	h.control = append(bytes.Repeat([]byte("0"), controlDigits-len(h.control)), h.control...)
	return h, body, h.check(component)
}

func splitISA(data []byte) (h isa, body []byte, component byte, ok bool) {
	if len(data) <= isaElement { // a file of "ISA" and line breaks, unwrapped
		return isa{}, nil, 0, false
	}
	var e [looseElements + 1][]byte // by their number; e[0] is the tag
	at := isaElement + 1
	for i := 1; i <= looseElements; i++ {
		n := bytes.IndexByte(data[min(at, len(data)):min(at+looseLength+1, len(data))], data[isaElement])
		if n < 0 || bytes.ContainsAny(data[at:at+n], "\r\n") {
			return isa{}, nil, 0, false
		}
		e[i] = trimmed(data[at : at+n])
		at += n + 1
	}
	if at+1 >= len(data) || data[at] == '\r' || data[at] == '\n' || len(e[15]) > 1 {
		return isa{}, nil, 0, false
	}
	_, size := utf8.DecodeRune(data[at+1:])
	h = isa{
		element: data[isaElement], terminator: data[at+1 : at+1+size],
		senderQualifier: e[5], sender: e[6], receiverQualifier: e[7], receiver: e[8],
		date: e[9], control: e[13], usage: ' ',
	}
	if len(e[15]) == 1 {
		h.usage = e[15][0]
	}
	return h, data[at+1+size:], data[at], true
}
