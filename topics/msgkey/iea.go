package msgkey

import (
	"bytes"
	"strings"
)

// checkTrailer walks the segments behind ISA to the end: one IEA whose element
// 2 is ISA13, and nothing behind it. Lenient, only a second interchange is
// refused.
func (h *isa) checkTrailer(data []byte, lenient bool) Code {
	blanks := " \t\r\n" // indented files exist
	if lenient {
		blanks = trailingBlanks // as behind an IEA, which is a segment like any other
	}
	for {
		data = bytes.TrimLeft(data, blanks)
		switch {
		case len(data) == 0 && lenient:
			return ""
		case len(data) == 0:
			return X12NoIEA
		}
		if bytes.HasPrefix(data, []byte("ISA")) {
			return X12MultipleInterchanges
		}
		segment, behind := h.cut(data)
		if h.is(segment, "IEA") && !lenient {
			return h.checkIEA(segment, behind)
		}
		data = behind
	}
}

func (h *isa) checkIEA(segment, behind []byte) Code {
	elements := segment[len("IEA*"):]
	if behind == nil { // the last segment may lack its terminator
		elements = bytes.TrimRight(elements, trailingBlanks)
	}
	_, control, _ := bytes.Cut(elements, []byte{h.element})
	control, _, _ = bytes.Cut(control, []byte{h.element})
	if !bytes.Equal(trimmed(control), h.control) {
		return X12IEAMismatch
	}
	for len(behind) > 0 {
		switch {
		case bytes.HasPrefix(behind, h.terminator):
			behind = behind[len(h.terminator):]
		case strings.IndexByte(trailingBlanks, behind[0]) >= 0:
			behind = behind[1:]
		case bytes.HasPrefix(behind, []byte("ISA")):
			return X12MultipleInterchanges
		default:
			return X12NoIEA
		}
	}
	return ""
}

// is reports whether the segment has this id.
func (h *isa) is(segment []byte, id string) bool {
	return len(segment) > len(id) && string(segment[:len(id)]) == id && segment[len(id)] == h.element
}

// cut splits off the first segment. behind is nil if it has no terminator.
func (h *isa) cut(data []byte) (segment, behind []byte) {
	from := h.binaryEnd(data)
	i := bytes.Index(data[from:], h.terminator)
	if i < 0 {
		return data, nil
	}
	i += from
	return data[:i], data[i+len(h.terminator):]
}

// binaryEnd is where the raw octets of a BIN*n* or BDS*x*n* segment end, or 0.
// They are skipped by length, else binary data could fake an IEA or ISA. A
// length beyond the data leaves nothing: the file is truncated.
func (h *isa) binaryEnd(data []byte) int {
	var at int
	switch {
	case h.is(data, "BIN"):
		at = len("BIN*")
	case h.is(data, "BDS"):
		at = len("BDS*")
		i := bytes.IndexByte(data[at:], h.element)
		if i < 0 || bytes.Contains(data[at:at+i], h.terminator) {
			return 0
		}
		at += i + 1
	default:
		return 0
	}
	n, digits := 0, 0
	for ; at+digits < len(data) && data[at+digits] >= '0' && data[at+digits] <= '9'; digits++ {
		n = min(n*10+int(data[at+digits]-'0'), len(data))
	}
	at += digits
	if digits == 0 || at >= len(data) || data[at] != h.element {
		return 0
	}
	return min(at+1+n, len(data))
}
