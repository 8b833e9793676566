package msgkey

import (
	"bytes"
	"unicode/utf8"
)

// text reads up to the next markup or the end of the data.
func (w *walker) text() Code {
	if len(w.open) == 0 {
		return w.outside()
	}
	start := w.at
	for w.at < len(w.data) {
		switch c := w.data[w.at]; {
		case c == '<':
			return w.keep(w.data[start:w.at])
		case c == '&' || c < ' ' || c >= 0x80:
			if !w.unusual(c) {
				return XMLNotWellFormed
			}
		case c == ']' && bytes.HasPrefix(w.data[w.at:], []byte("]]>")):
			return XMLNotWellFormed
		default:
			w.at++
		}
	}
	return XMLNotWellFormed // elements are open
}

// outside passes what may stand before and behind the root element: white
// space, and at the very end what ends files of old systems.
func (w *walker) outside() Code {
	w.skipBlanks()
	if w.complete && len(bytes.TrimLeft(w.data[w.at:], trailingBlanks)) == 0 {
		w.at = len(w.data)
	}
	if w.at < len(w.data) && w.data[w.at] != '<' {
		return XMLNotWellFormed
	}
	return ""
}

// keep adds raw text to the value of the innermost element, if it is wanted.
func (w *walker) keep(raw []byte) Code {
	if w.form != nil {
		w.form.text(w, raw)
	}
	if !w.open[len(w.open)-1].text {
		return ""
	}
	if len(w.value)+len(raw) > maxValue {
		return XMLTooDeep
	}
	w.value = w.charset.appendDecoded(w.value, raw)
	return ""
}

// unusual passes one character that is no plain printable one of ASCII: a
// reference, white space, or a character behind ASCII.
func (w *walker) unusual(c byte) bool {
	switch {
	case c == '\n', c == '\t', c == '\r':
		w.at++
		return true
	case c < ' ':
		return false
	case c == '&':
		_, size := reference(w.data[w.at:])
		w.at += size
		return size > 0
	}
	size := w.charset.width(w.data[w.at:])
	w.at += size
	return size > 0
}

// skipBlanks passes white space and reports whether there was any.
func (w *walker) skipBlanks() bool {
	start := w.at
	for w.at < len(w.data) && blank(w.data[w.at]) {
		w.at++
	}
	return w.at > start
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// take consumes s if it stands here.
func (w *walker) take(s string) bool {
	if len(w.data)-w.at < len(s) || string(w.data[w.at:w.at+len(s)]) != s {
		return false
	}
	w.at += len(s)
	return true
}

// content is the text of the place that has just ended: of the element itself,
// with CDATA, without what its children hold; white space collapsed. It is
// overwritten by the next one.
func (w *walker) content() []byte { return collapse(w.value) }

// collapse makes one space of every run of white space, and none at the ends,
// in place.
func collapse(b []byte) []byte {
	out, pending := b[:0], false
	for _, c := range b {
		if blank(c) {
			pending = len(out) > 0
			continue
		}
		if pending {
			out, pending = append(out, ' '), false
		}
		out = append(out, c)
	}
	return out
}

// decoded resolves the references of a checked attribute value.
func (w *walker) decoded(raw []byte) []byte {
	return w.charset.appendDecoded(make([]byte, 0, len(raw)), raw)
}

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
