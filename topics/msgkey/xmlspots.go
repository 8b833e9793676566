package msgkey

import (
	"bytes"
	"slices"
	"strings"
)

// source says what an extractor keeps a value of: of an attribute of a place, of the
// name of its element ("*"), or of its text.
type source struct {
	at        place
	attribute string
}

// trace reads a document with its format and notes where what that keeps has stood:
//
//	take(ublTaxCompany) ends      the VAT number is not kept yet
//	take(ublTax) ends             it is, and has stood where ublTaxCompany has begun
type trace struct {
	format

	kept func() []string // the values that are kept so far
	from []source        // of each of them

	last  map[place][]byte // where the text or the attribute of a place has begun last
	spots spots
}

func (t *trace) read(w *walker) spots {
	t.last = map[place][]byte{}
	t.spots.fields = make([]spot, len(t.from))
	w.read(t)
	return t.spots
}

func (t *trace) take(w *walker, at place, ended bool) Code {
	if !ended {
		t.last[at] = textAt(w.data[w.at:])
		for _, s := range t.from {
			if s.at == at && s.attribute != "" {
				t.last[at] = w.rawAttr(s.attribute)
			}
		}
	}
	before := t.kept()
	code := t.format.take(w, at, ended)
	for i, value := range t.kept() {
		if value != before[i] {
			t.spots.fields[i].in = t.last[t.from[i].at]
		}
	}
	return code
}

// rawAttr is the value of an attribute as it is written, or the local name of the
// element for "*".
func (w *walker) rawAttr(name string) []byte {
	if name == "*" {
		element := w.open[len(w.open)-1].name
		return element[bytes.IndexByte(element, ':')+1:]
	}
	for i := range w.attrs {
		if string(w.attrs[i].name) == name {
			return textAt(w.attrs[i].value)
		}
	}
	return nil
}

// textAt passes what does not count before a text: blanks, also as references, and what
// is no text. It gives nothing where a child element comes first.
func textAt(data []byte) []byte {
	for section := false; ; {
		data = trimLeft(data)
		switch {
		case section && bytes.HasPrefix(data, []byte("]]>")):
			data, section = data[len("]]>"):], false
		case section:
			return data
		case bytes.HasPrefix(data, []byte("<![CDATA[")):
			data, section = data[len("<![CDATA["):], true
		case bytes.HasPrefix(data, []byte("<!--")):
			_, data, _ = bytes.Cut(data, []byte("-->"))
		case bytes.HasPrefix(data, []byte("<?")):
			_, data, _ = bytes.Cut(data, []byte("?>"))
		case len(data) == 0 || data[0] == '<':
			return nil
		case data[0] == '&':
			r, size := reference(data)
			if size == 0 || !strings.ContainsRune(outerBlanks, r) {
				return data
			}
			data = data[size:]
		default:
			return data
		}
	}
}

func trimLeft(data []byte) []byte { return bytes.TrimLeft(data, outerBlanks) }

// invoiceSpots reads a UBL or CII invoice that gave a key.
func invoiceSpots(extractor string, data []byte, with *settings) spots {
	var v *invoice
	t := trace{}
	kind := func() string { return v.kind }
	further := func() string { return "" } // CII's second kind of BT-29
	var w *walker
	if extractor == UBL {
		u := &ubl{}
		v, t.format, w = &u.invoice, u, newWalker(data, ublSteps, UBLUnknownRoot)
		t.from = []source{{ublRoot, "*"}, {at: ublID}, {at: ublIssueDate}, {at: ublTaxCompany}, {at: ublLegalCompany}, {at: ublIdentificationID}, {at: ublEndpoint}, {at: ublRoot}}
	} else {
		c := &cii{}
		v, t.format, w = &c.invoice, c, newWalker(data, ciiSteps, CIIUnknownRoot)
		t.from = []source{{at: ciiTypeCode}, {at: ciiID}, {at: ciiIssueDate}, {at: ciiTaxID}, {at: ciiLegalID}, {at: ciiGlobalID}, {at: ciiURIID}, {at: ciiSellerID}}
		kind = func() string { return yes(c.typed) }
		further = func() string { return string(c.id) }
	}
	t.kept = func() []string {
		s := v.sellers
		return []string{kind(), v.number, v.date, s[0], s[1], s[2], s[3], further()}
	}
	read := t.read(w).fields
	seller := spot{}
	sellers := read[3:]
	for _, k := range with.Sellers {
		at := sellers[k.index()]
		if k == SellerID && at.in == nil && extractor == CII {
			at = sellers[sellerKinds]
		}
		if seller.in == nil {
			seller = at
		}
	}
	return spots{fields: []spot{read[0], seller, read[1], read[2]}}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func sbdhSpots(data []byte) spots {
	s := &sbdh{}
	t := trace{
		format: s,
		kept:   func() []string { return []string{s.sender, s.id} },
		from:   []source{{at: sbdhSenderID}, {at: sbdhInstanceID}},
	}
	return t.read(newWalker(data, sbdhSteps, SBDHUnknownRoot))
}

func cxmlSpots(data []byte, with *settings) spots {
	c := &cxml{}
	t := trace{
		format: c,
		kept:   func() []string { return []string{c.payloadID, c.domain, c.identity, c.orderID, yes(c.test)} },
		from: []source{
			{cxmlRoot, "payloadID"},
			{cxmlCredential, "domain"},
			{at: cxmlIdentity},
			{cxmlOrderHeader, "orderID"},
			{cxmlRequest, "deploymentMode"},
		},
	}
	w := newWalker(data, cxmlSteps, CXMLUnknownRoot)
	w.external = true
	read := t.read(w).fields
	fields := read[:1]
	if with.CXMLOrder {
		fields = []spot{read[0], {in: orElse(read[1].in, read[2].in)}, read[3]}
	}
	if c.test {
		fields = append(slices.Clip(fields), read[4])
	}
	return spots{fields: fields}
}
