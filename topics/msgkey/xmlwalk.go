package msgkey

// Limits of the XML reader, so that a hostile document is refused in bounded
// time and memory. Past any of them the code is XMLTooDeep.
const (
	maxDepth      = 200      // elements in elements
	maxAttributes = 200      // of one element, namespace declarations included
	maxBindings   = 200      // namespace declarations in scope
	maxValue      = 64 << 10 // octets of an identifying value as written
)

// place is an element that an extractor wants to see. A place is reached by
// direct children only, so that an ID elsewhere in the document, in an
// extension say, is never taken for the one that identifies it.
type place uint8

const (
	nowhere  place = iota // any other element; as an event, the document's end
	document              // what the root element is a child of
	firstOwn              // the first place of an extractor's own
)

// step leads from a place to a child element.
type step struct {
	from         place
	space, local string // local "*" is any other child; space does not matter then
	to           place
	text         bool // its text is wanted
}

// walker reads a document from its first octet to its last and shows the
// places of its steps. It checks all of the document for well-formedness (XML
// 1.0, fifth edition, and Namespaces in XML 1.0), so that a truncated file
// gives no key: encoding/xml takes two root elements, undeclared prefixes and
// repeated attributes, and needs an allocation for nearly every token.
type walker struct {
	data  []byte
	at    int
	steps []step
	// unknown is the code of a root element that no step leads to.
	unknown Code
	// external lets a DOCTYPE with an external identifier pass. It is never
	// fetched, and an internal subset is refused all the same.
	external bool

	form     *canonicalXML // is told what is read, if there is one
	charset  charset
	doctype  []byte // name of the DOCTYPE
	complete bool   // the root element has ended
	emptied  bool   // the last event opened an element without content
	open     []element
	bound    []binding
	outer    int // bindings in scope outside of the element in work
	attrs    []attribute
	value    []byte // text of the element whose text is wanted, references resolved

	// room is what most documents need, in one allocation.
	room struct {
		open  [12]element
		bound [8]binding
		attrs [8]attribute
	}
}

type element struct {
	name  []byte // as written
	at    place
	bound int // bindings in scope outside of it
	text  bool
}

func newWalker(data []byte, steps []step, unknown Code) *walker {
	w := &walker{data: data, steps: steps, unknown: unknown}
	w.open, w.bound, w.attrs = w.room.open[:0], w.room.bound[:0], w.room.attrs[:0]
	return w
}

// next gives the next place whose element opens or ends, and nowhere at the end
// of a well-formed document. The attributes of a place are there until the next
// call, when it opens; its text, when it ends.
func (w *walker) next() (at place, ended bool, code Code) {
	if w.emptied {
		w.emptied = false
		return w.pop(), true, ""
	}
	for {
		if code = w.text(); code != "" {
			return nowhere, false, code
		}
		if w.at == len(w.data) {
			if !w.complete {
				code = XMLNotWellFormed
			}
			return nowhere, true, code
		}
		at, ended, code = w.markup()
		if at != nowhere || code != "" {
			return at, ended, code
		}
	}
}

// markup reads what begins with the "<" at w.at.
func (w *walker) markup() (at place, ended bool, code Code) {
	if w.at+1 == len(w.data) {
		return nowhere, false, XMLNotWellFormed
	}
	switch w.data[w.at+1] {
	case '/':
		at, code = w.endTag()
		return at, true, code
	case '!':
		return nowhere, false, w.declaration()
	case '?':
		return nowhere, false, w.instruction()
	}
	at, code = w.startTag()
	if w.emptied && at == nowhere && code == "" {
		w.emptied = false
		w.pop()
	}
	return at, false, code
}

// pop ends the innermost element.
func (w *walker) pop() place {
	last := &w.open[len(w.open)-1]
	if w.form != nil {
		w.form.end(w, last.name)
	}
	at := last.at
	w.bound = w.bound[:last.bound]
	w.open = w.open[:len(w.open)-1]
	w.complete = len(w.open) == 0
	return at
}

// push opens an element and finds its place.
func (w *walker) push(name []byte, colon int) Code {
	if len(w.open) == maxDepth {
		return XMLTooDeep
	}
	e := element{name: name, bound: w.outer}
	space, ok := w.resolve(name[:max(colon, 0)])
	if !ok {
		return XMLNotWellFormed
	}
	parent := document
	if n := len(w.open); n > 0 {
		parent = w.open[n-1].at
	}
	if parent != nowhere {
		e.at, e.text = w.find(parent, space, name[colon+1:])
		if e.text {
			w.value = w.value[:0]
		}
	}
	if len(w.open) == 0 && e.at == nowhere {
		return w.unknown
	}
	w.open = append(w.open, e)
	return w.bounded(e.at)
}

// bounded refuses attributes of a place that are too long to identify anything.
func (w *walker) bounded(at place) Code {
	for i := range w.attrs {
		if at != nowhere && len(w.attrs[i].value) > maxValue {
			return XMLTooDeep
		}
	}
	return ""
}

func (w *walker) find(parent place, space, local []byte) (to place, text bool) {
	for i := range w.steps {
		s := &w.steps[i]
		if s.from == parent && (s.local == "*" || s.local == string(local) && s.space == string(space)) {
			return s.to, s.text
		}
	}
	return nowhere, false
}
