package msgkey

// Namespace names of CII (D16B, D22B).
const (
	ciiRootSpace   = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
	ciiAggregate   = "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"
	ciiUnqualified = "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100"
)

// Places in a CrossIndustryInvoice.
const (
	ciiRoot = firstOfBody + iota
	ciiDocument
	ciiID
	ciiTypeCode
	ciiIssue
	ciiIssueDate
	ciiTransaction
	ciiAgreement
	ciiSeller
	ciiTax
	ciiTaxID
	ciiLegal
	ciiLegalID
	ciiGlobalID
	ciiSellerID
	ciiCommunication
	ciiURIID
)

// ciiSteps is a table, never changed.
var ciiSteps = []step{
	{from: document, space: ciiRootSpace, local: "CrossIndustryInvoice", to: ciiRoot},
	{from: document, space: sbdhSpace, local: sbdhRoot, to: envelope},
	{from: envelope, space: sbdhSpace, local: "StandardBusinessDocumentHeader", to: envelopeHeader},
	{from: envelope, space: ciiRootSpace, local: "CrossIndustryInvoice", to: ciiRoot},
	{from: envelope, local: "*", to: otherBody},

	{from: ciiRoot, space: ciiRootSpace, local: "ExchangedDocument", to: ciiDocument},
	{from: ciiDocument, space: ciiAggregate, local: "ID", to: ciiID, text: true},
	{from: ciiDocument, space: ciiAggregate, local: "TypeCode", to: ciiTypeCode, text: true},
	{from: ciiDocument, space: ciiAggregate, local: "IssueDateTime", to: ciiIssue},
	{from: ciiIssue, space: ciiUnqualified, local: "DateTimeString", to: ciiIssueDate, text: true},
	{from: ciiRoot, space: ciiRootSpace, local: "SupplyChainTradeTransaction", to: ciiTransaction},
	{from: ciiTransaction, space: ciiAggregate, local: "ApplicableHeaderTradeAgreement", to: ciiAgreement},
	{from: ciiAgreement, space: ciiAggregate, local: "SellerTradeParty", to: ciiSeller},
	{from: ciiSeller, space: ciiAggregate, local: "SpecifiedTaxRegistration", to: ciiTax},
	{from: ciiTax, space: ciiAggregate, local: "ID", to: ciiTaxID, text: true},
	{from: ciiSeller, space: ciiAggregate, local: "SpecifiedLegalOrganization", to: ciiLegal},
	{from: ciiLegal, space: ciiAggregate, local: "ID", to: ciiLegalID, text: true},
	{from: ciiSeller, space: ciiAggregate, local: "GlobalID", to: ciiGlobalID, text: true},
	{from: ciiSeller, space: ciiAggregate, local: "ID", to: ciiSellerID, text: true},
	{from: ciiSeller, space: ciiAggregate, local: "URIUniversalCommunication", to: ciiCommunication},
	{from: ciiCommunication, space: ciiAggregate, local: "URIID", to: ciiURIID, text: true},
}

// fromCII is the extractor "cii": cii:{inv|cn}/{seller}/{BT-1}/{BT-2} of a
// CrossIndustryInvoice, bare or in an SBDH envelope.
func fromCII(_ *Message, p payload, with *settings) (Found, Code, bool) {
	if !p.mayBe("CrossIndustryInvoice", sbdhRoot) {
		return Found{}, CIIUnknownRoot, false
	}
	w := newWalker(p.data, ciiSteps, CIIUnknownRoot)
	var c cii
	if code, found := w.read(&c); code != "" {
		return Found{}, code, found
	}
	c.offer(SellerID, c.idScheme, c.id) // of the two kinds of BT-29 the global one goes first
	f, code := c.key(CII, invoiceCodes{CIIMissingID, CIIMissingIssueDate, CIIBadIssueDate, CIIMissingSeller}, with)
	return f, code, true
}

// cii is an invoice in work.
type cii struct {
	invoice

	typed        bool
	scheme       []byte // schemeID of the identifier that is open, format of a date
	idScheme, id []byte // of the seller's first ID
}

func (c *cii) take(w *walker, at place, ended bool) Code {
	switch {
	case c.done:
	case at == ciiRoot:
		c.seen, c.done = true, ended
		if !ended {
			c.kind = kindInvoice
		}
	case at == otherBody:
		return w.unknown
	case ended:
		c.close(at, w.content())
	default:
		c.begin(at, w)
	}
	return ""
}

func (c *cii) begin(at place, w *walker) {
	switch at {
	case ciiTaxID, ciiLegalID, ciiGlobalID, ciiSellerID, ciiURIID:
		c.scheme = w.attr("schemeID")
	case ciiIssueDate:
		c.scheme = w.attr("format")
	default: // nothing to remember
	}
}

func (c *cii) close(at place, value []byte) {
	switch at {
	case ciiID:
		first(&c.number, value)
	case ciiTypeCode:
		if !c.typed && creditNoteCode(string(value)) {
			c.kind = kindCreditNote
		}
		c.typed = true
	case ciiIssueDate:
		if len(value) > 0 && !c.dated {
			c.dated = true
			if string(c.scheme) == "102" {
				c.date, _ = basicDate(string(value))
			}
		}
	case ciiTaxID:
		if string(c.scheme) == "VA" { // FC is the local tax number
			c.offer(SellerVAT, nil, value)
		}
	case ciiLegalID:
		c.offer(SellerRegistration, c.scheme, value)
	case ciiGlobalID:
		c.offer(SellerID, c.scheme, value)
	case ciiSellerID:
		if len(c.id) == 0 {
			c.idScheme, c.id = c.scheme, append(c.id, value...)
		}
	case ciiURIID:
		c.offer(SellerEndpoint, c.scheme, value)
	default: // on the way to one of these
	}
}

// creditNoteCode tells the values of BT-3 (UNTDID 1001) that are credit notes.
func creditNoteCode(v string) bool {
	switch v {
	case "81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "532":
		return true
	}
	return false
}
