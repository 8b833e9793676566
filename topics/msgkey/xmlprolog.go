package msgkey

import "bytes"

// declaration reads a comment, a CDATA section or the DOCTYPE: what begins with
// "<!".
func (w *walker) declaration() Code {
	w.at += len("<!")
	switch {
	case w.take("--"):
		return w.comment()
	case w.take("[CDATA["):
		return w.cdata()
	case w.take("DOCTYPE"):
		return w.documentType()
	}
	return XMLNotWellFormed
}

func (w *walker) comment() Code {
	text, ok := w.until("--")
	if !ok || !w.charset.valid(text) || !w.take(">") {
		return XMLNotWellFormed
	}
	return ""
}

func (w *walker) cdata() Code {
	text, ok := w.until("]]>")
	if !ok || len(w.open) == 0 || !w.charset.valid(text) {
		return XMLNotWellFormed
	}
	if w.form != nil {
		w.form.cdata(w, text)
	}
	if !w.open[len(w.open)-1].text {
		return ""
	}
	if len(w.value)+len(text) > maxValue {
		return XMLTooDeep
	}
	w.value = w.charset.append(w.value, text)
	return ""
}

// until gives what stands before end, and consumes both.
func (w *walker) until(end string) ([]byte, bool) {
	n := bytes.Index(w.data[w.at:], []byte(end))
	if n < 0 {
		return nil, false
	}
	text := w.data[w.at : w.at+n]
	w.at += n + len(end)
	return text, true
}

// instruction reads a processing instruction, or the XML declaration at the
// document's first octet.
func (w *walker) instruction() Code {
	first := w.at == 0
	w.at += len("<?")
	target, colon, ok := w.qualifiedName()
	if !ok || colon >= 0 {
		return XMLNotWellFormed
	}
	blank := w.skipBlanks()
	text, ok := w.until("?>")
	switch {
	case !ok, !blank && len(text) > 0:
		return XMLNotWellFormed
	case string(target) == "xml":
		if !first {
			return XMLNotWellFormed
		}
		return w.xmlDeclaration(text)
	case bytes.EqualFold(target, []byte("xml")), !w.charset.valid(text):
		return XMLNotWellFormed
	}
	if w.form != nil {
		w.form.instruction(w, target, text)
	}
	return ""
}

// xmlDeclaration reads version, encoding and standalone, in this order. Any
// 1.x is read as 1.0, as its fifth edition says.
func (w *walker) xmlDeclaration(text []byte) Code {
	d := walker{data: text}
	version, ok := d.pseudo("version")
	if !ok || len(version) < 3 || string(version[:2]) != "1." || !all(version[2:], isDigit) {
		return XMLNotWellFormed
	}
	encoding, named := d.pseudo("encoding")
	standalone, said := d.pseudo("standalone")
	d.skipBlanks()
	if d.at < len(text) || said && string(standalone) != "yes" && string(standalone) != "no" {
		return XMLNotWellFormed
	}
	if !named {
		return ""
	}
	if w.charset, ok = charsetOf(encoding); !ok {
		return XMLEncoding
	}
	return ""
}

// pseudo reads name="value" if it stands next. All but the first need white
// space before them.
func (w *walker) pseudo(name string) (value []byte, ok bool) {
	start := w.at
	if blank := w.skipBlanks(); (blank || start == 0) && w.take(name) {
		w.skipBlanks()
		if w.take("=") {
			w.skipBlanks()
			if value, ok = w.quoted(); ok {
				return value, true
			}
		}
	}
	w.at = start
	return nil, false
}

// documentType reads a DOCTYPE, if the format has one at all: its external
// identifier is not followed, and an internal subset is where entities would be
// declared.
func (w *walker) documentType() Code {
	if len(w.open) > 0 || w.complete || w.doctype != nil || !w.skipBlanks() {
		return XMLNotWellFormed
	}
	name, _, ok := w.qualifiedName()
	if !ok {
		return XMLNotWellFormed
	}
	w.doctype = name
	blank := w.skipBlanks()
	if w.at < len(w.data) && w.data[w.at] == '[' || !w.external {
		return XMLDTDForbidden
	}
	if blank && !w.externalID() {
		return XMLNotWellFormed
	}
	w.skipBlanks()
	if w.at < len(w.data) && w.data[w.at] == '[' {
		return XMLDTDForbidden
	}
	if !w.take(">") {
		return XMLNotWellFormed
	}
	return ""
}

// externalID reads SYSTEM "…" or PUBLIC "…" "…", or nothing.
func (w *walker) externalID() bool {
	literals := 1
	switch {
	case w.take("SYSTEM"):
	case w.take("PUBLIC"):
		literals = 2
	default:
		return true
	}
	for range literals {
		if !w.skipBlanks() || w.at == len(w.data) {
			return false
		}
		quote := w.data[w.at : w.at+1]
		if quote[0] != '"' && quote[0] != '\'' {
			return false
		}
		w.at++
		if text, ok := w.until(string(quote)); !ok || !w.charset.valid(text) {
			return false
		}
	}
	return true
}

func all(b []byte, is func(byte) bool) bool {
	for _, c := range b {
		if !is(c) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
