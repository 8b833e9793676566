package msgkey

import (
	"bytes"
	"slices"
)

// mayBe reports that the root element may have one of these local names. Most
// documents tell in their first octets, so a chain reads a document once and
// not for every extractor that knows XML.
func (p *payload) mayBe(locals ...string) bool {
	return p.root == nil || slices.Contains(locals, string(p.root))
}

// rootName is the local name of the root element, or nil where it takes a
// reader to tell. A DOCTYPE is believed if it is cXML's: other formats have none.
func rootName(data []byte) []byte {
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(data, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(data, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(data, []byte("<!DOCTYPE ")):
			if name := nameAt(data[len("<!DOCTYPE "):]); string(name) == "cXML" {
				return name
			}
			return nil
		case len(data) > 1 && data[0] == '<':
			return nameAt(data[1:])
		}
		i := bytes.Index(data, []byte(end))
		if end == "" || i < 0 {
			return nil
		}
		data = data[i+len(end):]
	}
}

// nameAt gives the local part of a name of ASCII that something ends.
func nameAt(data []byte) []byte {
	start := 0
	for i, c := range data {
		switch {
		case nameOctet(c, i == start):
		case c == ':' && start == 0 && i > 0:
			start = i + 1
		case i > start && (blank(c) || c == '>' || c == '/' || c == '['):
			return data[start:i]
		default:
			return nil
		}
	}
	return nil
}
