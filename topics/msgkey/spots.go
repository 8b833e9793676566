package msgkey

import (
	"bytes"
	"strings"
)

// spot is where a field stands: in a header, or where these octets of the value begin.
type spot struct {
	header string
	in     []byte // none: it stands nowhere
}

// spots are those of a key's fields in their order. Nothing of them is kept while a key
// is read, so that the filter pays nothing for them: the message is read once more.
type spots struct {
	fields     []spot
	test, date spot // of an interchange
}

// located fills in the fields of an attempt that gave a key.
func (a *Attempt) located(m *Message, p payload, with *settings) {
	s := spotsOf(a.Found.Extractor, m, p, with)
	if a.Found.test() && a.Found.Extractor != CXML {
		s.fields = append(s.fields, s.test)
	}
	a.Fields = a.Found.Fields()
	for i := range a.Fields {
		if i < len(s.fields) {
			a.Fields[i].Header, a.Fields[i].Offset = s.fields[i].header, within(m.Value, s.fields[i].in)
		}
	}
	if date := a.Found.date; date != "" {
		a.Date = KeyField{"date", date, "", within(m.Value, s.date.in)}
	}
}

func spotsOf(extractor string, m *Message, p payload, with *settings) spots {
	switch extractor {
	case EDIFACT:
		return edifactSpots(p.data, with)
	case X12:
		return x12Spots(p.data, with)
	case UBL, CII:
		return invoiceSpots(extractor, p.data, with)
	case SBDH:
		return sbdhSpots(p.data)
	case CXML:
		return cxmlSpots(p.data, with)
	case AS4:
		return as4Spots(m, p, with)
	case JSON:
		return jsonSpots(p, with.pointers...)
	case CE:
		return ceSpots(m, p)
	case OFTP2:
		if sfid, _ := m.header(HeaderOFTP2SFID); len(trimBlanks(sfid)) > 0 {
			return inHeaders(HeaderOFTP2SFID, HeaderOFTP2SFID, HeaderOFTP2SFID, HeaderOFTP2SFID, HeaderOFTP2SFID)
		}
		return inHeaders(HeaderOFTP2Orig, HeaderOFTP2Dest, HeaderOFTP2DSN, HeaderOFTP2Date, HeaderOFTP2Time)
	case AS2:
		return inHeaders(HeaderAS2From, HeaderMessageID)
	case SFTP:
		return inHeaders(HeaderSFTPAccount, HeaderSFTPFilename) // and the content, which is all of the value
	case REST:
		return inHeaders(HeaderClientID, HeaderIdempotencyKey)
	}
	return inHeaders(HeaderName)
}

func inHeaders(names ...string) (s spots) {
	for _, name := range names {
		s.fields = append(s.fields, spot{header: name})
	}
	return s
}

func inValue(places ...[]byte) (s spots) {
	for _, in := range places {
		s.fields = append(s.fields, spot{in: in})
	}
	return s
}

// within is where a part of whole begins, or Nowhere: it is empty, or a copy. What
// readers give are slices of what they are given, whose capacity reaches to its end.
func within(whole, part []byte) int {
	at := cap(whole) - cap(part)
	if len(part) == 0 || at < 0 || at+len(part) > len(whole) || &whole[at] != &part[0] {
		return Nowhere
	}
	return at
}

// jsonSpots finds the values that pointers name; of a string its first character.
func jsonSpots(p payload, pointers ...pointer) (s spots) {
	doc, ok := readJSON(p)
	for _, pointer := range pointers {
		var value []byte
		if ok {
			value, _ = resolve(doc, pointer)
		}
		s.fields = append(s.fields, spot{in: bytes.TrimPrefix(value, []byte(`"`))})
	}
	return s
}

func ceSpots(m *Message, p payload) spots {
	if contentType, _ := m.header(HeaderContentType); mediaType(contentType) != ceMediaType+ceJSON {
		return inHeaders(HeaderCESource, HeaderCEID)
	}
	return jsonSpots(p, pointer{"source"}, pointer{"id"})
}

// as4Spots finds nothing in a SOAP part with a transfer encoding, which is read from a
// copy.
func as4Spots(m *Message, p payload, with *settings) spots {
	contentType, _ := m.header(HeaderContentType)
	e, _ := readEntity(contentType, p)
	soap, _ := e.soapPart(with.Lenient)
	u := &userMessage{}
	t := trace{
		format: u,
		kept:   func() []string { return []string{u.from, u.id} },
		from:   []source{{at: ebPartyID}, {at: ebMessageID}},
	}
	found := t.read(newWalker(clean(soap).data, soapSteps, AS4NotSOAP))
	for _, bracket := range [...]string{"<", "&lt;"} { // of a pair around the id
		if id := &found.fields[1]; !strings.HasPrefix(u.id, "<") {
			id.in = trimBlanks(bytes.TrimPrefix(id.in, []byte(bracket)))
		}
	}
	return found
}
