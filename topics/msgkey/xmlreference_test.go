package msgkey_test

import (
	"encoding/xml"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// refNode is an element of the reference reader: encoding/xml's raw tokens, and
// by hand what it does not check.
type refNode struct {
	space, local string
	attrs        map[string]string // those without a prefix
	text         string            // its own, not that of its children
	children     []*refNode
}

var (
	refStartTag    = regexp.MustCompile(`^<[^\s/>]+(\s+[^\s=]+\s*=\s*("[^"]*"|'[^']*'))*\s*/?>$`)
	refInstruction = regexp.MustCompile(`(?s)^([ \t\r\n].*)?\?>$`)
	refReference   = regexp.MustCompile(`&#(x?)([0-9A-Fa-f]*);`)
)

// refXML reads a document without XML declaration and DOCTYPE; nil is one that
// is not well-formed.
func refXML(data string) *refNode {
	if !refCharacters(data) {
		return nil
	}
	d := xml.NewDecoder(strings.NewReader(data))
	top := &refNode{}
	open := []*refNode{top}
	names := []string{""}
	scopes := []map[string]string{{"": "", "xml": "http://www.w3.org/XML/1998/namespace"}}
	for {
		start := d.InputOffset()
		token, err := d.RawToken()
		last := open[len(open)-1]
		if err != nil {
			if err.Error() == "EOF" && len(open) == 1 && len(top.children) == 1 {
				return top.children[0]
			}
			return nil
		}
		raw := data[start:d.InputOffset()]
		switch v := token.(type) {
		case xml.StartElement:
			if len(open) == 1 && len(top.children) == 1 {
				return nil
			}
			node, scope := refElement(v, raw, scopes[len(scopes)-1])
			if node == nil {
				return nil
			}
			last.children = append(last.children, node)
			open, scopes, names = append(open, node), append(scopes, scope), append(names, v.Name.Space+":"+v.Name.Local)
		case xml.EndElement:
			if len(open) == 1 || v.Name.Space+":"+v.Name.Local != names[len(names)-1] {
				return nil
			}
			open, scopes, names = open[:len(open)-1], scopes[:len(scopes)-1], names[:len(names)-1]
		case xml.CharData:
			if len(open) == 1 && strings.Trim(raw, " \t\r\n") != "" {
				return nil
			}
			last.text += string(v)
		case xml.ProcInst:
			if strings.EqualFold(v.Target, "xml") || strings.Contains(v.Target, ":") || !refInstruction.MatchString(raw[len("<?")+len(v.Target):]) {
				return nil
			}
		case xml.Directive:
			return nil
		}
	}
}

// refCharacters checks what encoding/xml does not: characters of comments and
// instructions, and references to surrogates.
func refCharacters(data string) bool {
	for _, m := range refReference.FindAllStringSubmatch(data, -1) {
		base := 10
		if m[1] != "" {
			base = 16
		}
		n, err := strconv.ParseUint(m[2], base, 32)
		if err != nil || n >= 0xD800 && n < 0xE000 || n > utf8.MaxRune {
			return false
		}
	}
	for _, r := range data {
		if r < ' ' && !strings.ContainsRune("\t\r\n", r) || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return utf8.ValidString(data)
}

func refElement(e xml.StartElement, raw string, outer map[string]string) (*refNode, map[string]string) {
	if !refStartTag.MatchString(raw) && !strings.ContainsAny(raw, "\u0085\u00a0\u2028") || strings.Contains(e.Name.Local, ":") {
		return nil, nil
	}
	scope := maps.Clone(outer)
	for _, a := range e.Attr {
		prefix, declares := a.Name.Local, a.Name.Space == "xmlns"
		if a.Name.Space == "" && a.Name.Local == "xmlns" {
			prefix, declares = "", true
		}
		if !declares {
			continue
		}
		reserved := a.Value == "http://www.w3.org/XML/1998/namespace"
		if (prefix == "xml") != reserved || prefix == "xmlns" || a.Value == "http://www.w3.org/2000/xmlns/" || prefix != "" && a.Value == "" {
			return nil, nil
		}
		scope[prefix] = a.Value
	}
	space, ok := scope[e.Name.Space]
	n := &refNode{space: space, local: e.Name.Local, attrs: map[string]string{}}
	seen := map[string]bool{}
	for _, a := range e.Attr {
		name := " " + a.Name.Local
		switch a.Name.Space {
		case "":
			n.attrs[a.Name.Local] = a.Value
		case "xmlns":
			name = "xmlns:" + a.Name.Local
		default:
			uri, declared := scope[a.Name.Space]
			ok = ok && declared
			name = uri + " " + a.Name.Local
		}
		ok = ok && !seen[name] && !strings.Contains(a.Name.Local, ":")
		seen[name] = true
	}
	if !ok {
		return nil, nil
	}
	return n, scope
}

// at gives the elements of a path of direct children.
func (n *refNode) at(path ...string) []*refNode {
	all := []*refNode{n}
	for _, name := range path {
		var next []*refNode
		for _, parent := range all {
			for _, c := range parent.children {
				if c.space+" "+c.local == name {
					next = append(next, c)
				}
			}
		}
		all = next
	}
	return all
}

// first is the first value of a path that is not empty.
func (n *refNode) first(path ...string) string {
	for _, e := range n.at(path...) {
		if v := e.value(); v != "" {
			return v
		}
	}
	return ""
}

func (n *refNode) value() string { return refCollapsed(n.text) }

func refCollapsed(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }), " ")
}
