package msgkey

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxKey is the most characters a key has; all are ASCII, so octets and
// columns too.
const MaxKey = 200

// hashedPrefix is how much of a longer key stays readable before its hash.
const hashedPrefix = 110

const upperHex = "0123456789ABCDEF"

// Field is one field of a key: its parts in order, as raw octets. Empty parts
// at its end do not count.
type Field []string

// Encode builds a key. It is injective: two lists of fields give the same key
// only if they are equal but for empty parts at a field's end. A key longer
// than MaxKey takes the hashed form
// scheme ":" first 110 characters "~" hex(SHA-256(full key)).
func Encode(scheme string, fields ...Field) string { return limit(encode(scheme, fields...)) }

// encode gives the key before the 200-character rule.
func encode(scheme string, fields ...Field) string {
	var stack [256]byte
	b := append(stack[:0], scheme...)
	for i, f := range fields {
		b = append(b, fieldSeparator(i))
		start := len(b)
		for j, part := range f {
			if j > 0 {
				b = append(b, ':')
			}
			b = appendPart(b, part)
		}
		b = endField(b, start)
	}
	return string(b)
}

func fieldSeparator(i int) byte {
	if i == 0 {
		return ':'
	}
	return '/'
}

// endField drops the empty parts at the end of the field that begins at start.
// An encoded part holds no colon, so what stands there is separators alone.
func endField(b []byte, start int) []byte {
	for len(b) > start && b[len(b)-1] == ':' {
		b = b[:len(b)-1]
	}
	return b
}

// appendPart writes the octets of one part.
func appendPart[T ~string | ~[]byte](dst []byte, part T) []byte {
	for i := range len(part) {
		c := part[i]
		if plain(c) {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', upperHex[c>>4], upperHex[c&0xF])
	}
	return dst
}

// plain reports the octets that stand for themselves in a part.
func plain(c byte) bool {
	switch c {
	case '-', '.', '_', '@', '+', '=', ',':
		return true
	}
	return alphanumeric(c)
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// limit applies the 200-character rule to a full key. "~" is never written by
// the encoding, so a hashed key equals no plain one. The cut may fall into a
// %XX.
func limit(full string) string {
	if len(full) <= MaxKey {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	cut := strings.IndexByte(full, ':') + 1 + hashedPrefix
	return full[:cut] + "~" + hex.EncodeToString(sum[:])
}
