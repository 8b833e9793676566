package msgkey

import "bytes"

// maxListed bounds what Interchanges gives of one file.
const maxListed = 1000

// Interchanges lists the control numbers (EDIFACT 0020, encoded as in a key; X12
// ISA13) of the interchanges in a value that holds several of one syntax, in
// their order, at most 1000. It is for people who must split a file that was
// refused with edifact.multiple_interchanges or x12.multiple_interchanges, and so
// forgiving: the list ends where a header cannot be read.
func Interchanges(value []byte) []string {
	p := clean(value)
	switch {
	case p.utf16:
		return nil
	case p.format == FormatEDIFACT:
		return edifactInterchanges(p.data)
	case p.format == FormatX12:
		return x12Interchanges(p.data)
	}
	return nil
}

func edifactInterchanges(data []byte) (numbers []string) {
	for len(numbers) < maxListed {
		s, rest, code := readUNA(data)
		if code == "" {
			rest, code = s.openUNB(rest)
		}
		if code != "" {
			return numbers
		}
		var u unb
		if u, data, code = u.read(&s, rest); code != "" {
			return numbers
		}
		numbers = append(numbers, string(u.key[u.field:]))
		for {
			data = s.skip(data, trailingBlanks)
			if tag, _ := s.tag(data); opensInterchange(tag) {
				break
			}
			end, ok := s.segmentEnd(data)
			if !ok {
				return numbers
			}
			data = data[end+1:]
		}
	}
	return numbers
}

func x12Interchanges(data []byte) (numbers []string) {
	for len(numbers) < maxListed {
		h, rest, code := readLooseISA(data)
		if code != "" {
			return numbers
		}
		numbers = append(numbers, string(h.control))
		for {
			rest = bytes.TrimLeft(rest, trailingBlanks)
			if bytes.HasPrefix(rest, []byte("ISA")) {
				break
			}
			if _, rest = h.cut(rest); len(rest) == 0 {
				return numbers
			}
		}
		data = rest
	}
	return numbers
}
