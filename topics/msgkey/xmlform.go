package msgkey

import (
	"bufio"
	"bytes"
	"slices"
	"unicode/utf8"
)

// xmlForm writes a document as Exclusive XML Canonicalization 1.0 without
// comments does (W3C, 18 July 2002), so its hash is that of what xmllint
// --exc-c14n prints but for comments. It streams: memory does not grow with the
// document. An external DOCTYPE is passed over, as in cXML; an internal subset,
// and what is not well-formed, is not read.
func xmlForm(b *bufio.Writer, _ *Message, p payload) bool {
	if p.format != FormatXML || p.utf16 {
		return false
	}
	w := newWalker(p.data, []step{{from: document, local: "*", to: firstOwn}}, XMLNotWellFormed)
	w.external, w.form = true, &canonicalXML{Writer: b}
	for {
		at, _, code := w.next()
		if code != "" || at == nowhere {
			return code == ""
		}
	}
}

// canonicalXML is told what a walker reads, and writes it.
type canonicalXML struct {
	*bufio.Writer

	rendered []binding // namespace declarations written and in scope, innermost last
	levels   []int     // how many were, before each open element
	used     [][]byte  // prefixes of the element in work
	attrs    []canonicalAttribute
	ended    bool // the root element has
}

type canonicalAttribute struct {
	space, local []byte
	*attribute
}

// start writes a start tag: namespaces that are visibly used here and not
// rendered yet, by prefix; then attributes, by namespace and name.
func (c *canonicalXML) start(w *walker, name []byte, colon int) {
	c.levels = append(c.levels, len(c.rendered))
	_ = c.WriteByte('<')
	c.plain(w, name)
	c.collect(w, name[:max(colon, 0)])
	for _, prefix := range c.used {
		c.namespace(w, prefix)
	}
	for i := range c.attrs {
		a := &c.attrs[i]
		_ = c.WriteByte(' ')
		c.plain(w, a.name)
		_, _ = c.WriteString(`="`)
		c.value(w, a.value)
		_ = c.WriteByte('"')
	}
	_ = c.WriteByte('>')
}

// collect sorts the prefixes and attributes of the tag in work.
func (c *canonicalXML) collect(w *walker, prefix []byte) {
	c.used, c.attrs = append(c.used[:0], prefix), c.attrs[:0]
	for i := range w.attrs {
		a := &w.attrs[i]
		if a.declares() {
			continue
		}
		item := canonicalAttribute{local: a.name[a.colon+1:], attribute: a}
		if a.colon >= 0 {
			c.used = append(c.used, a.name[:a.colon])
			item.space = spaceOf(w, a.name[:a.colon])
		}
		c.attrs = append(c.attrs, item)
	}
	slices.SortFunc(c.used, bytes.Compare)
	c.used = slices.CompactFunc(c.used, bytes.Equal)
	slices.SortFunc(c.attrs, func(a, b canonicalAttribute) int {
		if n := bytes.Compare(a.space, b.space); n != 0 {
			return n
		}
		return bytes.Compare(a.local, b.local)
	})
}

func spaceOf(w *walker, prefix []byte) []byte {
	if string(prefix) == "xml" {
		return []byte(xmlSpace)
	}
	space, _ := w.resolve(prefix)
	return space
}

// namespace writes a declaration if an output ancestor has not the same; the
// empty default namespace only takes back one that was written.
func (c *canonicalXML) namespace(w *walker, prefix []byte) {
	if string(prefix) == "xml" {
		return
	}
	space := spaceOf(w, prefix)
	var above []byte
	for _, b := range slices.Backward(c.rendered) {
		if bytes.Equal(b.prefix, prefix) {
			above = b.space
			break
		}
	}
	if bytes.Equal(above, space) {
		return
	}
	c.rendered = append(c.rendered, binding{prefix: prefix, space: space})
	_, _ = c.WriteString(" xmlns")
	if len(prefix) > 0 {
		_ = c.WriteByte(':')
		c.plain(w, prefix)
	}
	_, _ = c.WriteString(`="`)
	for _, octet := range space {
		c.octet(octet, true)
	}
	_ = c.WriteByte('"')
}

// end writes an end tag, of an empty element too.
func (c *canonicalXML) end(w *walker, name []byte) {
	_, _ = c.WriteString("</")
	c.plain(w, name)
	_ = c.WriteByte('>')
	last := len(c.levels) - 1
	c.rendered, c.levels = c.rendered[:c.levels[last]], c.levels[:last]
	c.ended = last == 0
}

// instruction writes a processing instruction; outside of the root element on a
// line of its own.
func (c *canonicalXML) instruction(w *walker, target, text []byte) {
	if c.ended {
		_ = c.WriteByte('\n')
	}
	_, _ = c.WriteString("<?")
	c.plain(w, target)
	if len(text) > 0 {
		_ = c.WriteByte(' ')
		c.lines(w, text)
	}
	_, _ = c.WriteString("?>")
	if len(c.levels) == 0 && !c.ended {
		_ = c.WriteByte('\n')
	}
}

// text writes character data as it was written, with its references.
func (c *canonicalXML) text(w *walker, raw []byte) {
	c.characters(w, raw, true, false)
}

// cdata writes a CDATA section as the text that it stands for.
func (c *canonicalXML) cdata(w *walker, raw []byte) {
	c.characters(w, raw, false, false)
}

// value writes an attribute's value: literal white space is a space (XML 1.0
// §3.3.3), white space by reference stays.
func (c *canonicalXML) value(w *walker, raw []byte) {
	c.characters(w, raw, true, true)
}

// characters ends lines as XML does (§2.11): CR LF and CR are LF, but for those
// by reference.
func (c *canonicalXML) characters(w *walker, raw []byte, references, attribute bool) {
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case b == '&' && references:
			r, size := reference(raw[i:])
			c.rune(r, attribute)
			i += max(size, 1) - 1
		case b == '\r' && i+1 < len(raw) && raw[i+1] == '\n':
		case attribute && blank(b):
			_ = c.WriteByte(' ')
		case b == '\r':
			_ = c.WriteByte('\n')
		case b < utf8.RuneSelf || w.charset == utf8Charset:
			c.octet(b, attribute)
		default:
			c.rune(w.charset.rune(b), attribute)
		}
	}
}

func (c *canonicalXML) rune(r rune, attribute bool) {
	if r < utf8.RuneSelf {
		c.octet(byte(r&0x7F), attribute)
		return
	}
	_, _ = c.WriteRune(r)
}

// octet writes one of UTF-8, escaped where it must be. Errors stay in the
// writer until Flush.
func (c *canonicalXML) octet(b byte, attribute bool) {
	escaped := ""
	switch b {
	case '&':
		escaped = "&amp;"
	case '<':
		escaped = "&lt;"
	case '\r':
		escaped = "&#xD;"
	case '>':
		if !attribute {
			escaped = "&gt;"
		}
	case '"':
		if attribute {
			escaped = "&quot;"
		}
	case '\t':
		if attribute {
			escaped = "&#x9;"
		}
	case '\n':
		if attribute {
			escaped = "&#xA;"
		}
	}
	if escaped == "" {
		_ = c.WriteByte(b)
		return
	}
	_, _ = c.WriteString(escaped)
}

// plain writes what needs no escapes.
func (c *canonicalXML) plain(w *walker, name []byte) {
	if w.charset == utf8Charset {
		_, _ = c.Write(name)
		return
	}
	_, _ = c.Write(w.charset.append(nil, name))
}

// lines writes text without escapes.
func (c *canonicalXML) lines(w *walker, text []byte) {
	for len(text) > 0 {
		line, rest, more := bytes.Cut(text, []byte("\r"))
		c.plain(w, line)
		if more && !bytes.HasPrefix(rest, []byte("\n")) {
			_ = c.WriteByte('\n')
		}
		text = rest
	}
}
