package msgkey

import (
	"bytes"
	"strings"
)

// trailingBlanks may follow the last segment: white space, NUL and Ctrl-Z, the
// end-of-file mark of old systems.
const trailingBlanks = " \t\r\n\x00\x1A"

// checkTrailer scans from behind UNB to the end: one UNZ whose element 2 is
// ref (0020, encoded), and nothing behind it. A second interchange is refused:
// a key from the first alone would drop the others when a retry bundles them
// differently. Lenient, that is all that is refused.
func (s *service) checkTrailer(data, ref []byte, lenient bool) Code {
	blanks := " \t\r\n"
	if lenient {
		blanks = trailingBlanks // as behind a UNZ, which is a segment like any other
	}
	for {
		data = s.skip(data, blanks)
		tag, _ := s.tag(data)
		if opensInterchange(tag) {
			return EDIFACTMultipleInterchanges
		}
		end, ok := s.segmentEnd(data)
		switch {
		case !ok && lenient:
			return ""
		case !ok:
			return EDIFACTNoUNZ
		case string(tag[:]) == "UNZ" && !lenient:
			return s.checkUNZ(data[:end+1], data[end+1:], ref)
		}
		data = data[end+1:]
	}
}

func opensInterchange(tag [3]byte) bool {
	switch string(tag[:]) {
	case "UNA", "UNB", "UIB":
		return true
	}
	return false
}

func (s *service) checkUNZ(segment, behind, ref []byte) Code {
	if !s.refersTo(segment, ref) {
		return EDIFACTUNZMismatch
	}
	for len(behind) > 0 && (behind[0] == s.terminator || strings.IndexByte(trailingBlanks, behind[0]) >= 0) {
		behind = behind[1:]
	}
	if len(behind) == 0 {
		return ""
	}
	if tag, _ := s.tag(behind); opensInterchange(tag) {
		return EDIFACTMultipleInterchanges
	}
	return EDIFACTNoUNZ
}

// refersTo compares UNZ element 2 with 0020 of UNB, both encoded. A segment
// whose tag only begins with UNZ refers to nothing.
func (s *service) refersTo(segment, ref []byte) bool {
	var scratch, encoded [64]byte
	got := encoded[:0]
	for element := 0; element <= 2; { // element 0 is the tag
		value, rest, end, ok := s.next(segment, scratch[:0])
		if !ok || element == 0 && (string(value) != "UNZ" || end != endElement) {
			return false
		}
		segment = rest
		if element == 2 {
			got = appendPart(got, bytes.Trim(value, " "))
		}
		switch end {
		case endComponent:
			if element == 2 {
				got = append(got, ':')
			}
		case endElement:
			element++
		case endSegment:
			element = 3
		}
	}
	return bytes.Equal(endField(got, 0), ref)
}

// skipBlanks passes white space between segments.
func (s *service) skipBlanks(data []byte) []byte { return s.skip(data, " \t\r\n") }

func (s *service) skip(data []byte, blanks string) []byte {
	for len(data) > 0 && strings.IndexByte(blanks, data[0]) >= 0 && !s.active(data[0]) {
		data = data[1:]
	}
	return data
}
