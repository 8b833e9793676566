package msgkey

import (
	"bytes"
	"unicode/utf8"
)

// Octets of the fixed-width ISA segment, counted from 0.
const (
	isaElement    = 3 // first element separator
	isaComponent  = 104
	isaTerminator = 105
	isaLength     = 106
)

// isa is what is read of an ISA segment. The slices point into the data.
type isa struct {
	element    byte
	terminator []byte // one octet, or a whole UTF-8 character

	senderQualifier, sender     []byte // ISA05, ISA06
	receiverQualifier, receiver []byte // ISA07, ISA08
	date                        []byte // ISA09
	control                     []byte // ISA13
	usage                       byte   // ISA15
}

// readISA reads the segment by position; body is what follows its terminator.
func readISA(data []byte) (h isa, body []byte, code Code) {
	if len(data) <= isaElement {
		return isa{}, nil, X12ISATruncated
	}
	if c := data[isaElement]; alphanumeric(c) || c == ' ' || c == '\r' || c == '\n' {
		return isa{}, nil, X12BadSeparators
	}
	data = unwrap(data)
	if len(data) < isaLength {
		return isa{}, nil, X12ISATruncated
	}
	if !isaFits(data) {
		return isa{}, nil, X12ISALayout
	}
	h = isa{
		element:           data[isaElement],
		terminator:        terminatorAt(data),
		senderQualifier:   trimmed(data[32:34]),
		sender:            trimmed(data[35:50]),
		receiverQualifier: trimmed(data[51:53]),
		receiver:          trimmed(data[54:69]),
		date:              trimmed(data[70:76]),
		control:           data[90:99],
		usage:             data[102],
	}
	return h, data[isaTerminator+len(h.terminator):], h.check(data[isaComponent])
}

func trimmed(field []byte) []byte { return bytes.Trim(field, " ") }

// isaFits checks that the element separator stands at its 16 places and
// nowhere else in the segment.
func isaFits(data []byte) bool {
	places := [...]int{3, 6, 17, 20, 31, 34, 50, 53, 69, 76, 81, 83, 89, 99, 101, 103}
	for _, i := range places {
		if data[i] != data[isaElement] {
			return false
		}
	}
	return bytes.Count(data[isaElement:isaComponent], data[isaElement:isaElement+1]) == len(places)
}

// terminatorAt takes the whole character where the octet begins one: U+2026
// has been seen.
func terminatorAt(data []byte) []byte {
	_, size := utf8.DecodeRune(data[isaTerminator:])
	return data[isaTerminator : isaTerminator+size]
}

func (h *isa) check(component byte) Code {
	first := h.terminator[0]
	switch {
	case h.element == component, h.element == first, component == first, alphanumeric(first):
		return X12BadSeparators
	case len(h.sender) == 0:
		return X12MissingSender
	case len(h.receiver) == 0:
		return X12MissingReceiver
	}
	for _, c := range h.control {
		if c < '0' || c > '9' {
			return X12BadControlNumber
		}
	}
	return ""
}
