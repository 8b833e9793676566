package msgkey

import "bytes"

// startTag reads a start tag or an empty-element tag.
func (w *walker) startTag() (place, Code) {
	if w.complete {
		return nowhere, XMLNotWellFormed // a second root element
	}
	w.at++
	name, colon, ok := w.qualifiedName()
	if !ok {
		return nowhere, XMLNotWellFormed
	}
	if code := w.attributes(); code != "" {
		return nowhere, code
	}
	if code := w.push(name, colon); code != "" {
		return nowhere, code
	}
	if w.form != nil {
		w.form.start(w, name, colon)
	}
	return w.open[len(w.open)-1].at, ""
}

// attributes reads up to the tag's end and brings its namespaces into scope.
func (w *walker) attributes() Code {
	w.attrs, w.outer = w.attrs[:0], len(w.bound)
	for {
		blank := w.skipBlanks()
		if w.at == len(w.data) {
			return XMLNotWellFormed
		}
		switch c := w.data[w.at]; {
		case c == '>':
			w.at++
			return w.checkAttributes()
		case c == '/':
			if w.at++; w.at == len(w.data) || w.data[w.at] != '>' {
				return XMLNotWellFormed
			}
			w.at++
			w.emptied = true
			return w.checkAttributes()
		case !blank:
			return XMLNotWellFormed
		}
		if code := w.attribute(); code != "" {
			return code
		}
	}
}

func (w *walker) checkAttributes() Code {
	if len(w.attrs) == 0 {
		return ""
	}
	if code := w.declare(); code != "" {
		return code
	}
	if !w.resolveAttributes() || !w.distinct() {
		return XMLNotWellFormed
	}
	return ""
}

// attribute reads name="value".
func (w *walker) attribute() Code {
	if len(w.attrs) == maxAttributes {
		return XMLTooDeep
	}
	var a attribute
	var ok bool
	if a.name, a.colon, ok = w.qualifiedName(); !ok {
		return XMLNotWellFormed
	}
	w.skipBlanks()
	if !w.take("=") {
		return XMLNotWellFormed
	}
	w.skipBlanks()
	if a.value, ok = w.quoted(); !ok {
		return XMLNotWellFormed
	}
	w.attrs = append(w.attrs, a)
	return ""
}

// quoted reads an attribute's value and checks its characters.
func (w *walker) quoted() (value []byte, ok bool) {
	if w.at == len(w.data) || w.data[w.at] != '"' && w.data[w.at] != '\'' {
		return nil, false
	}
	quote := w.data[w.at]
	w.at++
	start := w.at
	for w.at < len(w.data) {
		switch c := w.data[w.at]; {
		case c == quote:
			w.at++
			return w.data[start : w.at-1], true
		case c == '<':
			return nil, false
		case c == '&' || c < ' ' || c >= 0x80:
			if !w.unusual(c) {
				return nil, false
			}
		default:
			w.at++
		}
	}
	return nil, false
}

// endTag reads an end tag, which must be that of the innermost element.
func (w *walker) endTag() (place, Code) {
	w.at += len("</")
	if len(w.open) == 0 {
		return nowhere, XMLNotWellFormed
	}
	name := w.open[len(w.open)-1].name
	if !bytes.HasPrefix(w.data[w.at:], name) {
		return nowhere, XMLNotWellFormed
	}
	w.at += len(name)
	w.skipBlanks()
	if !w.take(">") { // a longer name ends here too
		return nowhere, XMLNotWellFormed
	}
	return w.pop(), ""
}

// attr is the value of an attribute without a prefix, of the place that has
// just opened: references resolved, white space collapsed. It is empty if there
// is none.
func (w *walker) attr(name string) []byte {
	for i := range w.attrs {
		if a := &w.attrs[i]; string(a.name) == name {
			return collapse(w.decoded(a.value))
		}
	}
	return nil
}
