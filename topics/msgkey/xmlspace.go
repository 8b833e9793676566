package msgkey

import "bytes"

// Namespace names that Namespaces in XML §3 reserves.
const (
	xmlSpace   = "http://www.w3.org/XML/1998/namespace"
	xmlnsSpace = "http://www.w3.org/2000/xmlns/"
)

// binding is a namespace declaration in scope.
type binding struct {
	prefix []byte // "" for the default namespace
	space  []byte // "" takes a declaration back
	id     int    // equal for equal names: attributes are compared by it
}

// attribute of the element that was opened last. Its value was checked and is
// still as written.
type attribute struct {
	name  []byte
	colon int // where the prefix ends, -1 without one
	value []byte
	space int // id of the prefix's binding; 0 without a prefix
}

const (
	noSpaceID  = 0
	xmlSpaceID = -1 // of the prefix xml, which needs no declaration
)

// declares reports xmlns="…" and xmlns:p="…".
func (a *attribute) declares() bool {
	return bytes.HasPrefix(a.name, []byte("xmlns")) && (len(a.name) == len("xmlns") || a.colon == len("xmlns"))
}

// declare brings the element's namespace declarations into scope.
func (w *walker) declare() Code {
	for i := range w.attrs {
		a := &w.attrs[i]
		if !a.declares() {
			continue
		}
		if len(w.bound) == maxBindings || len(a.value) > maxValue {
			return XMLTooDeep
		}
		b := binding{space: w.spaceName(a.value)}
		if a.colon >= 0 {
			b.prefix = a.name[a.colon+1:]
		}
		if !b.allowed(a.colon >= 0) {
			return XMLNotWellFormed
		}
		b.id = w.spaceID(b.space)
		w.bound = append(w.bound, b)
	}
	return ""
}

// spaceName is a declared name as UTF-8 with its references resolved.
func (w *walker) spaceName(raw []byte) []byte {
	if w.charset == utf8Charset && bytes.IndexByte(raw, '&') < 0 {
		return raw
	}
	return w.decoded(raw)
}

// allowed holds the constraints of Namespaces in XML §3: xml and xmlns keep
// their names, and no prefix is taken back.
func (b *binding) allowed(prefixed bool) bool {
	if string(b.prefix) == "xml" {
		return string(b.space) == xmlSpace
	}
	return string(b.prefix) != "xmlns" && string(b.space) != xmlSpace && string(b.space) != xmlnsSpace &&
		(!prefixed || len(b.space) > 0)
}

// spaceID is the id of an equal name in scope, else a new one. Names are so
// compared once for a declaration and not for every pair of attributes.
func (w *walker) spaceID(space []byte) int {
	for i := range w.bound {
		if bytes.Equal(w.bound[i].space, space) {
			return w.bound[i].id
		}
	}
	if string(space) == xmlSpace {
		return xmlSpaceID
	}
	return len(w.bound) + 1
}

// lookUp finds the innermost binding of a prefix.
func (w *walker) lookUp(prefix []byte) *binding {
	for i := len(w.bound) - 1; i >= 0; i-- {
		if b := &w.bound[i]; string(b.prefix) == string(prefix) {
			return b
		}
	}
	return nil
}

// resolve gives the namespace name of an element's prefix.
func (w *walker) resolve(prefix []byte) (space []byte, ok bool) {
	if b := w.lookUp(prefix); b != nil {
		return b.space, true
	}
	return nil, len(prefix) == 0 || string(prefix) == "xml"
}

// resolveAttributes finds the namespaces of attributes; one without a prefix
// has none.
func (w *walker) resolveAttributes() bool {
	for i := range w.attrs {
		a := &w.attrs[i]
		if a.colon < 0 || a.declares() {
			continue
		}
		prefix := a.name[:a.colon]
		if string(prefix) == "xml" {
			a.space = xmlSpaceID
			continue
		}
		b := w.lookUp(prefix)
		if b == nil {
			return false
		}
		a.space = b.id
	}
	return true
}

// distinct reports that no attribute stands twice, by its name as written and
// by its namespace and local name. It compares pairs: maxAttributes bounds them.
func (w *walker) distinct() bool {
	for i := range w.attrs {
		a := &w.attrs[i]
		for j := range i {
			b := &w.attrs[j]
			if a.space != noSpaceID && a.space == b.space {
				if bytes.Equal(a.name[a.colon+1:], b.name[b.colon+1:]) {
					return false
				}
			} else if bytes.Equal(a.name, b.name) {
				return false
			}
		}
	}
	return true
}
