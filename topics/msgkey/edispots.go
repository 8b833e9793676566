package msgkey

import "bytes"

// edifactSpots reads UNB and, where the key has them, the UNH of an interchange that gave
// a key.
func edifactSpots(data []byte, with *settings) spots {
	s, data, _ := readUNA(data)
	data, _ = s.openUNB(data)
	var elements [unbTest + 1][]byte
	body := s.begins(data, elements[:])
	found := inValue(elements[unbSender], elements[unbRecipient], elements[unbRef])
	found.test.in, found.date.in = elements[unbTest], elements[unbDate]
	for with.EDIFACTMessages {
		body = s.skipBlanks(body)
		end, ok := s.segmentEnd(body)
		if !ok {
			break
		}
		if tag, rest := s.tag(body); string(tag[:]) == "UNH" {
			_, rest, _, _ = s.next(rest, nil) // the separator behind the tag
			var message [3][]byte
			s.begins(rest, message[:])
			if len(message[1]) == 0 {
				message[1] = message[2]
			}
			found.fields = append(found.fields, spot{in: message[1]})
		}
		body = body[end+1:]
	}
	return found
}

// begins finds where the elements of a segment begin, by their numbers from 1 on: at
// their first component that is not empty. It gives what stands behind the segment.
func (s *service) begins(data []byte, elements [][]byte) []byte {
	var scratch [64]byte
	for element := 1; ; {
		value, rest, end, ok := s.next(data, scratch[:0])
		if !ok {
			return nil
		}
		if element < len(elements) && len(elements[element]) == 0 && len(bytes.Trim(value, " ")) > 0 {
			elements[element] = s.begin(data)
		}
		switch data = rest; end {
		case endComponent:
		case endElement:
			element++
		case endSegment:
			return data
		}
	}
}

// begin passes what is no part of a component's value.
func (s *service) begin(data []byte) []byte {
	released := false
	for i, c := range data {
		switch {
		case s.dropped(c), c == ' ':
		case s.releases && c == s.release && !released:
			released = true
		default:
			return data[i:]
		}
	}
	return nil
}

// x12Spots reads ISA and, where the key has them, groups and transaction sets of an
// interchange that gave a key.
func x12Spots(data []byte, with *settings) spots {
	plain := unwrap(data)
	h, body, _ := readISA(plain)
	if with.Lenient {
		if loose, behind, _, ok := splitISA(data); ok {
			plain, h, body = data, loose, behind
		} else if loose, behind, _, ok = splitISA(plain); ok {
			h, body = loose, behind
		}
	}
	usage := plain[:max(0, within(plain, h.terminator)-2)] // up to the separator before ISA16
	usage = bytes.TrimRight(usage, " ")
	found := inValue(orElse(h.senderQualifier, h.sender), orElse(h.receiverQualifier, h.receiver), h.control)
	found.test.in, found.date.in = usage[max(0, len(usage)-1):], h.date
	if with.X12Level != X12Interchange {
		found.fields = append(found.fields, h.levelSpots(body, with.X12Level)...)
	}
	if within(data, h.terminator) != Nowhere {
		return found
	}
	for _, s := range append([]*spot{&found.test, &found.date}, pointers(found.fields)...) {
		s.in = wrapped(data, within(plain, s.in))
	}
	return found
}

func orElse(qualifier, id []byte) []byte {
	if len(qualifier) > 0 {
		return qualifier
	}
	return id
}

func pointers(all []spot) (each []*spot) {
	for i := range all {
		each = append(each, &all[i])
	}
	return each
}

// wrapped gives what stands at the nth octet that is no line break.
func wrapped(data []byte, n int) []byte {
	for i, c := range data {
		if c == '\r' || c == '\n' {
			continue
		}
		if n == 0 {
			return data[i:]
		}
		n--
	}
	return nil
}

// levelSpots finds the segments whose elements appendLevels adds.
func (h *isa) levelSpots(data []byte, level X12Level) (found []spot) {
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		if len(data) == 0 {
			return found
		}
		segment, behind := h.cut(data)
		if h.is(segment, "GS") || h.is(segment, "ST") && level == X12Transactions {
			found = append(found, spot{in: bytes.TrimLeft(segment[len("GS*"):], " ")})
		}
		data = behind
	}
}
