package msgkey

import (
	"bytes"
	"slices"
)

// service holds the service characters of an interchange (ISO 9735, UNA), and
// what follows from them.
type service struct {
	component, element, release, terminator byte

	releases bool // there is a release character (before version 4 it may be absent)
	advised  bool // they come from a UNA

	// CR and LF that are no service characters are dropped everywhere, inside
	// values too: files wrapped at 80 columns break inside 0020.
	dropCR, dropLF bool
}

// Separators of level B: IS1, IS3 and IS4, without release character.
const (
	levelBComponent  = 0x1F
	levelBElement    = 0x1D
	levelBTerminator = 0x1C
)

// unaLength is "UNA" and six service characters.
const unaLength = 9

func levelA() service {
	return service{
		component: ':', element: '+', release: '?', terminator: '\'',
		releases: true, dropCR: true, dropLF: true,
	}
}

func levelB() service {
	return service{
		component: levelBComponent, element: levelBElement, terminator: levelBTerminator,
		dropCR: true, dropLF: true,
	}
}

// readUNA reads the service string advice by position, or gives the default.
// The decimal mark and the repetition separator do not matter for the key.
func readUNA(data []byte) (service, []byte, Code) {
	if !bytes.HasPrefix(data, []byte("UNA")) {
		return levelA(), data, ""
	}
	if len(data) < unaLength {
		return service{}, nil, EDIFACTBadUNA
	}
	s := service{
		component: data[3], element: data[4], release: data[6], terminator: data[8],
		releases: data[6] != ' ', advised: true,
	}
	if !s.valid() {
		return service{}, nil, EDIFACTBadUNA
	}
	s.dropCR, s.dropLF = !s.active('\r'), !s.active('\n')
	return s, bytes.TrimLeft(data[unaLength:], leadingBlanks), ""
}

func (s *service) valid() bool {
	if s.component == s.element || s.component == s.terminator || s.element == s.terminator {
		return false
	}
	for _, c := range [...]byte{s.component, s.element, s.terminator} {
		if c == ' ' || alphanumeric(c) || s.releases && c == s.release {
			return false
		}
	}
	return !alphanumeric(s.release)
}

func (s *service) active(c byte) bool {
	return c == s.component || c == s.element || c == s.terminator || s.releases && c == s.release
}

func (s *service) dropped(c byte) bool {
	return c == '\n' && s.dropLF || c == '\r' && s.dropCR
}

// ending is what stands behind a component.
type ending uint8

const (
	endComponent ending = iota
	endElement
	endSegment
)

// next reads a component into dst, with releases resolved and line breaks
// dropped, up to the separator behind it; ok is false if the data ends first.
func (s *service) next(data, dst []byte) (value, rest []byte, end ending, ok bool) {
	released := false
	for i, b := range data {
		switch {
		case s.dropped(b):
			// Also between a release character and what it releases: the
			// breaks were put in after the release characters.
			continue
		case released:
			released = false
		case s.releases && b == s.release:
			released = true
			continue
		case b == s.component:
			return dst, data[i+1:], endComponent, true
		case b == s.element:
			return dst, data[i+1:], endElement, true
		case b == s.terminator:
			return dst, data[i+1:], endSegment, true
		}
		dst = append(dst, b)
	}
	return nil, nil, endSegment, false
}

// tag reads the three octets of a segment's tag; fewer leave zeros.
func (s *service) tag(data []byte) (tag [3]byte, rest []byte) {
	n := 0
	for i, b := range data {
		if s.dropped(b) {
			continue
		}
		tag[n] = b
		if n++; n == len(tag) {
			return tag, data[i+1:]
		}
	}
	return tag, nil
}

// segmentEnd finds the terminator of the segment that data begins with.
func (s *service) segmentEnd(data []byte) (int, bool) {
	for from := 0; ; {
		i := bytes.IndexByte(data[from:], s.terminator)
		if i < 0 {
			return 0, false
		}
		i += from
		if !s.released(data[:i]) {
			return i, true
		}
		from = i + 1
	}
}

// released reports whether the octet behind data is released: an odd number of
// release characters stands before it. Looking back never passes the previous
// terminator octet, so the scan stays linear.
func (s *service) released(data []byte) bool {
	if !s.releases {
		return false
	}
	odd := false
	for _, b := range slices.Backward(data) {
		switch {
		case s.dropped(b):
		case b == s.release:
			odd = !odd
		default:
			return odd
		}
	}
	return odd
}
