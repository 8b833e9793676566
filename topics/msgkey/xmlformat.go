package msgkey

import "bytes"

// format takes the places of its document.
type format interface {
	take(w *walker, at place, ended bool) Code
	finish() Code // of a well-formed document, whose places are all taken
}

// read shows a format its document. found is false where the root element, or
// what an envelope holds, is of another format.
func (w *walker) read(f format) (code Code, found bool) {
	for code == "" {
		at, ended, c := w.next()
		switch {
		case c != "":
			code = c
		case at == nowhere:
			return f.finish(), true
		default:
			code = f.take(w, at, ended)
		}
	}
	// A DOCTYPE stands before the root element and has its name.
	if code == XMLDTDForbidden && (string(w.doctype) == "cXML") != w.external {
		code = w.unknown
	}
	return code, code != w.unknown
}

// openedAs tells the local name of the element that has just opened.
func (w *walker) openedAs(local string) bool {
	name := w.open[len(w.open)-1].name
	return string(name[bytes.IndexByte(name, ':')+1:]) == local
}
