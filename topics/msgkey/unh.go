package msgkey

import "bytes"

// appendMessages adds a field for every UNH: 0062, the message reference
// number, and 0065, the message type. ISO 9735: 0062 with S009 is unique within
// the interchange.
func (s *service) appendMessages(key, data []byte) []byte {
	for {
		data = s.skipBlanks(data)
		end, ok := s.segmentEnd(data)
		if !ok {
			return key
		}
		if tag, _ := s.tag(data); string(tag[:]) == "UNH" {
			key = s.appendMessage(key, data[:end+1])
		}
		data = data[end+1:]
	}
}

// appendMessage adds the first components of elements 1 and 2.
func (s *service) appendMessage(key, segment []byte) []byte {
	start := len(key) + 1
	key = append(key, '/')
	var scratch [64]byte
	for element, position := 0, 0; element <= 2; {
		value, rest, end, ok := s.next(segment, scratch[:0])
		if !ok || element == 0 && string(value) != "UNH" {
			break
		}
		if segment = rest; element > 0 && position == 0 {
			key = append(appendPart(key, bytes.Trim(value, " ")), ':')
		}
		switch end {
		case endComponent:
			position++
		case endElement:
			element, position = element+1, 0
		case endSegment:
			element = 3
		}
	}
	return endField(key, start)
}
