package msgkey

import "bytes"

// appendLevels adds a field for every group, GS01, GS02, GS03 and GS06 (X12.6
// §3.9.1 identifies a group by them), and at the lower level one for every
// transaction set, ST01 and ST02.
func (h *isa) appendLevels(key, data []byte, level X12Level) []byte {
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		if len(data) == 0 {
			return key
		}
		segment, behind := h.cut(data)
		switch {
		case h.is(segment, "GS"):
			key = h.appendElements(key, segment, 1, 2, 3, 6)
		case h.is(segment, "ST") && level == X12Transactions:
			key = h.appendElements(key, segment, 1, 2)
		}
		data = behind
	}
}

// appendElements adds a field of a segment's elements, by their numbers in
// rising order.
func (h *isa) appendElements(key, segment []byte, numbers ...int) []byte {
	key = append(key, '/')
	start := len(key)
	for number := 0; len(numbers) > 0; number++ {
		value, rest, more := bytes.Cut(segment, []byte{h.element})
		if number == numbers[0] {
			key = append(appendPart(key, trimmed(value)), ':')
			numbers = numbers[1:]
		}
		if segment = rest; !more {
			break
		}
	}
	return endField(key, start)
}
