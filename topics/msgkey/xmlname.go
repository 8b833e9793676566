package msgkey

import "unicode/utf8"

// qualifiedName reads a name with at most one colon, at neither end
// (Namespaces in XML §4); colon is -1 without one.
func (w *walker) qualifiedName() (name []byte, colon int, ok bool) {
	start := w.at
	colon = -1
	for begins := true; w.at < len(w.data); begins = false {
		c := w.data[w.at]
		if c == ':' && !begins && colon < 0 {
			colon = w.at - start
			w.at++
			begins = true
			if w.at == len(w.data) {
				return nil, 0, false
			}
			c = w.data[w.at]
		}
		size := 1
		if c >= 0x80 {
			size = w.nameRune(begins)
		} else if !nameOctet(c, begins) {
			size = 0
		}
		if size == 0 {
			if begins || c == ':' {
				return nil, 0, false
			}
			return w.data[start:w.at], colon, true
		}
		w.at += size
	}
	return nil, 0, false // a name never ends a document
}

// nameOctet reports what names consist of within ASCII, the colon aside.
func nameOctet(c byte, begins bool) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' ||
		!begins && (c >= '0' && c <= '9' || c == '-' || c == '.')
}

// nameRune gives the width of a name character behind ASCII, 0 if it is none.
func (w *walker) nameRune(begins bool) int {
	if w.charset != utf8Charset {
		var text [utf8.UTFMax]byte
		r, _ := utf8.DecodeRune(w.charset.appendDecoded(text[:0], w.data[w.at:w.at+1]))
		if w.charset.width(w.data[w.at:]) == 0 || !nameCharacter(r, begins) {
			return 0
		}
		return 1
	}
	r, size := utf8.DecodeRune(w.data[w.at:])
	if size == 1 || !nameCharacter(r, begins) {
		return 0
	}
	return size
}

// nameCharacter is productions [4] and [4a] of XML 1.0 behind ASCII.
func nameCharacter(r rune, begins bool) bool {
	switch {
	case r >= 0xC0 && r <= 0x2FF:
		return r != 0xD7 && r != 0xF7
	case r == 0xB7, r >= 0x300 && r <= 0x36F, r == 0x203F, r == 0x2040:
		return !begins
	}
	return r >= 0x370 && r <= 0x1FFF && r != 0x37E || r >= 0x200C && r <= 0x200D || r >= 0x2070 && r <= 0x218F ||
		r >= 0x2C00 && r <= 0x2FEF || r >= 0x3001 && r <= 0xD7FF || r >= 0xF900 && r <= 0xFDCF ||
		r >= 0xFDF0 && r <= 0xFFFD || r >= 0x10000 && r <= 0xEFFFF
}
