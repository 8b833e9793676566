package msgkey

import "bytes"

// maxControlRef is the length of data element 0020, an..14 (ISO 9735).
const maxControlRef = 14

// Elements of UNB that are read, by position.
const (
	unbSyntax    = 1  // S001
	unbSender    = 2  // S002
	unbRecipient = 3  // S003
	unbDate      = 4  // S004: date, then time
	unbRef       = 5  // 0020
	unbTest      = 11 // 0035
)

// unb is what is kept of a UNB segment. The key grows while the segment is
// read, as its elements stand in the key's order.
type unb struct {
	key    []byte
	date   []byte // encoded
	field  int    // where the field in work begins in key
	refLen int    // octets of 0020 before the encoding

	syntax, sender, recipient, test bool // found and well formed
}

// read consumes the segment and its terminator. Then key[field:] is 0020. It
// takes and gives values, so that the caller's buffers stay on its stack.
func (u unb) read(s *service, data []byte) (unb, []byte, Code) {
	var scratch [64]byte
	for element, position := unbSyntax, 0; ; {
		value, rest, end, ok := s.next(data, scratch[:0])
		if !ok {
			return u, nil, EDIFACTUNBUnterminated
		}
		u = u.take(element, position, bytes.Trim(value, " "), end)
		switch data = rest; end {
		case endComponent:
			position++
		case endElement:
			element, position = element+1, 0
		case endSegment:
			return u, data, u.check()
		}
	}
}

// take adds one component.
func (u unb) take(element, position int, value []byte, end ending) unb {
	first := position == 0
	switch element {
	case unbSyntax:
		u.syntax = u.syntax || first && syntaxID(value)
	case unbSender:
		u.sender = u.sender || first && len(value) > 0
		u = u.append(value, ':', first, end)
	case unbRecipient:
		u.recipient = u.recipient || first && len(value) > 0
		u = u.append(value, '/', first, end)
	case unbDate:
		if first {
			u.date = appendPart(u.date, value)
		}
	case unbRef:
		u.refLen += len(value)
		u = u.append(value, '/', first, end)
	case unbTest:
		u.test = first && end != endComponent && string(value) == "1"
	}
	return u
}

// append writes a component as a part of the key. All components are kept, the
// routing address included: the standard identifies by the whole composites.
func (u unb) append(value []byte, separator byte, first bool, end ending) unb {
	if first {
		u.key = append(u.key, separator)
		u.field = len(u.key)
	} else {
		u.key = append(u.key, ':')
	}
	u.key = appendPart(u.key, value)
	if end != endComponent {
		u.key = endField(u.key, u.field)
	}
	return u
}

func (u unb) check() Code {
	switch {
	case !u.syntax:
		return EDIFACTBadSyntaxID
	case !u.sender:
		return EDIFACTMissingSender
	case !u.recipient:
		return EDIFACTMissingRecipient
	case u.refLen == 0:
		return EDIFACTMissingControlRef
	case u.refLen > maxControlRef:
		return EDIFACTControlRefTooLong
	}
	return ""
}

func (u unb) suffix() string {
	if u.test {
		return "/T"
	}
	return ""
}

// syntaxID matches data element 0001: UNOA to UNOZ, and IATA and IATB in
// travel.
func syntaxID(v []byte) bool {
	return len(v) == 4 && isUpper(v[0]) && isUpper(v[1]) && isUpper(v[2]) &&
		(isUpper(v[3]) || v[3] >= '0' && v[3] <= '9')
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
