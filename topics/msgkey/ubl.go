package msgkey

import "bytes"

// Namespace names of UBL 2.1.
const (
	ublInvoiceSpace    = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
	ublCreditNoteSpace = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2" //nolint:gosec // G101: a namespace name
	ublAggregate       = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
	ublBasic           = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"
)

// Places in an Invoice or CreditNote.
const (
	ublRoot = firstOfBody + iota
	ublID
	ublIssueDate
	ublSupplier
	ublParty
	ublEndpoint
	ublIdentification
	ublIdentificationID
	ublTax
	ublTaxCompany
	ublTaxScheme
	ublTaxSchemeID
	ublLegal
	ublLegalCompany
)

// ublSteps is a table, never changed.
var ublSteps = []step{
	{from: document, space: ublInvoiceSpace, local: "Invoice", to: ublRoot},
	{from: document, space: ublCreditNoteSpace, local: "CreditNote", to: ublRoot},
	{from: document, space: sbdhSpace, local: sbdhRoot, to: envelope},
	{from: envelope, space: sbdhSpace, local: "StandardBusinessDocumentHeader", to: envelopeHeader},
	{from: envelope, space: ublInvoiceSpace, local: "Invoice", to: ublRoot},
	{from: envelope, space: ublCreditNoteSpace, local: "CreditNote", to: ublRoot},
	{from: envelope, local: "*", to: otherBody},

	{from: ublRoot, space: ublBasic, local: "ID", to: ublID, text: true},
	{from: ublRoot, space: ublBasic, local: "IssueDate", to: ublIssueDate, text: true},
	{from: ublRoot, space: ublAggregate, local: "AccountingSupplierParty", to: ublSupplier},
	{from: ublSupplier, space: ublAggregate, local: "Party", to: ublParty},
	{from: ublParty, space: ublBasic, local: "EndpointID", to: ublEndpoint, text: true},
	{from: ublParty, space: ublAggregate, local: "PartyIdentification", to: ublIdentification},
	{from: ublIdentification, space: ublBasic, local: "ID", to: ublIdentificationID, text: true},
	{from: ublParty, space: ublAggregate, local: "PartyTaxScheme", to: ublTax},
	{from: ublTax, space: ublBasic, local: "CompanyID", to: ublTaxCompany, text: true},
	{from: ublTax, space: ublAggregate, local: "TaxScheme", to: ublTaxScheme},
	{from: ublTaxScheme, space: ublBasic, local: "ID", to: ublTaxSchemeID, text: true},
	{from: ublParty, space: ublAggregate, local: "PartyLegalEntity", to: ublLegal},
	{from: ublLegal, space: ublBasic, local: "CompanyID", to: ublLegalCompany, text: true},
}

// fromUBL is the extractor "ubl": ubl:{inv|cn}/{seller}/{BT-1}/{BT-2} of a UBL
// 2.1 Invoice or CreditNote, bare or in an SBDH envelope.
func fromUBL(_ *Message, p payload, with *settings) (Found, Code, bool) {
	if !p.mayBe("Invoice", "CreditNote", sbdhRoot) {
		return Found{}, UBLUnknownRoot, false
	}
	w := newWalker(p.data, ublSteps, UBLUnknownRoot)
	var u ubl
	if code, found := w.read(&u); code != "" {
		return Found{}, code, found
	}
	f, code := u.key(UBL, invoiceCodes{UBLMissingID, UBLMissingIssueDate, UBLBadIssueDate, UBLMissingSeller}, with)
	return f, code, true
}

// ubl is an invoice in work.
type ubl struct {
	invoice

	scheme  []byte // schemeID of the identifier that is open
	company []byte // of the PartyTaxScheme that is open
	vat     bool   // and that it is for VAT
}

func (u *ubl) take(w *walker, at place, ended bool) Code {
	switch {
	case u.done:
	case at == ublRoot:
		u.seen, u.done = true, ended
		if !ended {
			u.kind = kindInvoice
			if w.openedAs("CreditNote") {
				u.kind = kindCreditNote
			}
		}
	case at == otherBody:
		return w.unknown
	case ended:
		u.close(at, w)
	default:
		u.begin(at, w)
	}
	return ""
}

func (u *ubl) begin(at place, w *walker) {
	switch at {
	case ublEndpoint, ublIdentificationID, ublLegalCompany:
		u.scheme = w.attr("schemeID")
	case ublTax:
		u.company, u.vat = nil, false
	default: // nothing to remember
	}
}

func (u *ubl) close(at place, w *walker) {
	switch at {
	case ublID:
		first(&u.number, w.content())
	case ublIssueDate:
		if v := w.content(); len(v) > 0 && !u.dated {
			u.dated = true
			u.date, _ = isoDate(string(v))
		}
	case ublTaxCompany:
		u.company = bytes.Clone(w.content())
	case ublTaxSchemeID:
		u.vat = bytes.EqualFold(w.content(), []byte("VAT"))
	case ublTax:
		if u.vat {
			u.offer(SellerVAT, nil, u.company)
		}
	case ublLegalCompany:
		u.offer(SellerRegistration, u.scheme, w.content())
	case ublIdentificationID:
		if string(u.scheme) != "SEPA" { // BT-90, the creditor for direct debits
			u.offer(SellerID, u.scheme, w.content())
		}
	case ublEndpoint:
		u.offer(SellerEndpoint, u.scheme, w.content())
	default: // on the way to one of these
	}
}

// first keeps the first value that is not empty.
func first(at *string, value []byte) {
	if *at == "" {
		*at = string(value)
	}
}
