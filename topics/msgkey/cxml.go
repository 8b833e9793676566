package msgkey

import "bytes"

// Places in a cXML document. It has no namespace.
const (
	cxmlRoot = firstOwn + iota
	cxmlHeader
	cxmlFrom
	cxmlCredential
	cxmlIdentity
	cxmlRequest // or Message
	cxmlOrder
	cxmlOrderHeader
)

// cxmlSteps is a table, never changed.
var cxmlSteps = []step{
	{from: document, local: "cXML", to: cxmlRoot},
	{from: cxmlRoot, local: "Header", to: cxmlHeader},
	{from: cxmlHeader, local: "From", to: cxmlFrom},
	{from: cxmlFrom, local: "Credential", to: cxmlCredential},
	{from: cxmlCredential, local: "Identity", to: cxmlIdentity, text: true},
	{from: cxmlRoot, local: "Request", to: cxmlRequest},
	{from: cxmlRoot, local: "Message", to: cxmlRequest},
	{from: cxmlRequest, local: "OrderRequest", to: cxmlOrder},
	{from: cxmlOrder, local: "OrderRequestHeader", to: cxmlOrderHeader},
}

// fromCXML is the extractor "cxml": cxml:{payloadID}, and /T for
// deploymentMode="test". cXML's documents carry a DOCTYPE: it is passed over.
func fromCXML(_ *Message, p payload, with *settings) (Found, Code, bool) {
	if !p.mayBe("cXML") {
		return Found{}, CXMLUnknownRoot, false
	}
	w := newWalker(p.data, cxmlSteps, CXMLUnknownRoot)
	w.external = true
	var c cxml
	if code, found := w.read(&c); code != "" {
		return Found{}, code, found
	}
	fields := []Field{{c.payloadID}}
	if with.CXMLOrder {
		fields = append(fields, Field{c.domain, c.identity}, Field{c.orderID})
	}
	if c.test {
		fields = append(fields, Field{"T"})
	}
	return newKey(CXML, fields...), "", true
}

type cxml struct {
	payloadID        string
	test             bool
	domain, identity string // of the first credential of From
	orderID          string

	inDomain []byte // of the credential that is open
}

func (c *cxml) take(w *walker, at place, ended bool) Code {
	switch {
	case at == cxmlIdentity && ended:
		if c.identity == "" {
			c.domain = string(c.inDomain)
			c.identity = string(w.content())
		}
	case ended:
	case at == cxmlRoot:
		c.payloadID = string(w.attr("payloadID"))
	case at == cxmlRequest:
		c.test = c.test || bytes.Equal(w.attr("deploymentMode"), []byte("test"))
	case at == cxmlCredential:
		c.inDomain = w.attr("domain")
	case at == cxmlOrderHeader:
		first(&c.orderID, w.attr("orderID"))
	}
	return ""
}

func (c *cxml) finish() Code {
	if c.payloadID == "" {
		return CXMLMissingPayloadID
	}
	return ""
}
