package msgkey

import (
	"bytes"
	"unicode/utf8"
)

// reference reads a character reference or one of the five predefined entities.
// Its size is 0 if it is neither: no other entity can have been declared.
func reference(data []byte) (r rune, size int) {
	end := bytes.IndexByte(data[:min(len(data), maxReference)], ';')
	if end < 0 {
		return 0, 0
	}
	switch name := string(data[1:end]); name {
	case "lt":
		r = '<'
	case "gt":
		r = '>'
	case "amp":
		r = '&'
	case "apos":
		r = '\''
	case "quot":
		r = '"'
	default:
		var ok bool
		if r, ok = characterReference(data[1:end]); !ok {
			return 0, 0
		}
	}
	return r, end + 1
}

// maxReference is longer than every reference that people write; leading zeros
// would have no end.
const maxReference = 32

func characterReference(name []byte) (rune, bool) {
	digits, base := bytes.TrimPrefix(name, []byte("#")), rune(10)
	if len(digits) == len(name) {
		return 0, false
	}
	if rest, hexadecimal := bytes.CutPrefix(digits, []byte("x")); hexadecimal {
		digits, base = rest, 16
	}
	r := rune(0)
	for _, c := range digits {
		d := digit(c)
		if d >= base {
			return 0, false
		}
		if r = r*base + d; r > utf8.MaxRune {
			return 0, false
		}
	}
	return r, len(digits) > 0 && character(r)
}

// digit is the value of a hexadecimal digit, or one that no base has.
func digit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10
	}
	return 16
}

// character is production [2] of XML 1.0.
func character(r rune) bool {
	return r >= ' ' && r < 0xD800 || r == '\t' || r == '\n' || r == '\r' ||
		r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= utf8.MaxRune
}
