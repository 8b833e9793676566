package msgkey

import "bytes"

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
	if w.at == len(w.data) || w.data[w.at] == '<' {
		return ""
	}
	if !w.complete || len(bytes.TrimLeft(w.data[w.at:], trailingBlanks)) > 0 {
		return XMLNotWellFormed
	}
	w.at = len(w.data)
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
