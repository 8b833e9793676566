package msgkey

import "bytes"

// fromX12 is the extractor "x12": x12:{05}:{06}/{07}:{08}/{13} of ISA, and /T
// or /I when the usage indicator ISA15 is not P. X12.5 §5.1.2: qualifiers, ids
// and the control number "shall by themselves be unique within a reasonably
// extended time frame".
func fromX12(_ *Message, p payload, with *settings) (Found, Code, bool) {
	f, code := x12(p.data, with)
	return f, code, true
}

func x12(data []byte, with *settings) (Found, Code) {
	read := readISA
	if with.Lenient {
		read = readLooseISA
	}
	h, body, code := read(data)
	if code != "" {
		return Found{}, code
	}
	// Strict: a truncated file must not occupy the key of the complete one.
	if code = h.checkTrailer(body, with.Lenient); code != "" {
		return Found{}, code
	}
	var stack [256]byte
	var date [32]byte
	key := h.key(stack[:0])
	if with.X12Level != X12Interchange {
		key = h.appendLevels(key, body, with.X12Level)
	}
	return newInterchange(key, h.suffix(), appendPart(date[:0], h.date)), ""
}

// key writes the four ids and the control number. Blanks around an id go, on
// both sides, as right-justified ids exist; inner ones and case stay.
func (h *isa) key(b []byte) []byte {
	b = append(b, "x12:"...)
	b = append(appendPart(b, h.senderQualifier), ':')
	b = append(appendPart(b, h.sender), '/')
	b = append(appendPart(b, h.receiverQualifier), ':')
	b = append(appendPart(b, h.receiver), '/')
	return appendPart(b, h.control)
}

// suffix keeps an indicator that the standard does not know as a field of its
// own too: a number range that is not production never meets production's.
func (h *isa) suffix() string {
	switch h.usage {
	case 'P':
		return ""
	case 'T':
		return "/T"
	case 'I':
		return "/I"
	}
	return "/" + string(appendPart(nil, []byte{h.usage}))
}

// unwrap removes the line breaks of a file that was wrapped at 80 columns: one
// copy, and only for such files. A break as the terminator itself (octet 105)
// is no wrapping.
func unwrap(data []byte) []byte {
	if !bytes.ContainsAny(data[:min(len(data), isaTerminator)], "\r\n") {
		return data
	}
	out := make([]byte, 0, len(data))
	for _, c := range data {
		if c != '\r' && c != '\n' {
			out = append(out, c)
		}
	}
	return out
}
