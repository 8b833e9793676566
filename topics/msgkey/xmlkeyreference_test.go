package msgkey_test

import (
	"regexp"
	"slices"
	"strings"

	"dedupledger/topics/msgkey"
)

const (
	refUBLSpace = "urn:oasis:names:specification:ubl:schema:xsd:"
	refCAC      = refUBLSpace + "CommonAggregateComponents-2 "
	refCBC      = refUBLSpace + "CommonBasicComponents-2 "
	refCIISpace = "urn:un:unece:uncefact:data:standard:"
	refRSM      = refCIISpace + "CrossIndustryInvoice:100 "
	refRAM      = refCIISpace + "ReusableAggregateBusinessInformationEntity:100 "
	refUDT      = refCIISpace + "UnqualifiedDataType:100 "
	refSH       = "http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader "
)

var (
	refISODate = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(Z|[+-][0-9]{2}:[0-9]{2})?$`)
	refDate102 = regexp.MustCompile(`^([0-9]{4})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$`)
)

// refDocument reads a fuzzed value without XML declaration; a DOCTYPE passes if
// it is cXML's external one.
func refDocument(value string, doctype bool) *refNode {
	data := strings.TrimRight(refClean(value), refTrailing)
	if _, rest, ok := strings.Cut(data, "?>"); ok && strings.HasPrefix(data, "<?xml ") {
		data = rest
	}
	if doctype {
		external := regexp.MustCompile(`<!DOCTYPE cXML SYSTEM "[^"<>\x00-\x1F\x7F-\xFF]*">`)
		if at := external.FindStringIndex(data); at != nil && !strings.Contains(data[:at[0]], "<") {
			data = data[:at[0]] + data[at[1]:]
		}
	}
	return refXML(data)
}

// refBody takes a document out of an SBDH envelope.
func refBody(n *refNode) *refNode {
	if n == nil || n.space+" "+n.local != refSH+"StandardBusinessDocument" {
		return n
	}
	for _, c := range n.children {
		if c.space+" "+c.local != refSH+"StandardBusinessDocumentHeader" {
			return c
		}
	}
	return nil
}

// refSellers gives vat, reg, id and ep in this order; the first that is there
// counts.
func refInvoice(scheme, kind, number, date string, sellers ...msgkey.Field) string {
	for _, s := range sellers {
		if s[len(s)-1] == "" {
			continue
		}
		if number == "" || date == "" {
			return ""
		}
		return msgkey.Encode(scheme, msgkey.Field{kind}, s, msgkey.Field{number}, msgkey.Field{date})
	}
	return ""
}

// refIdentifier is the first element of a path that has a value and passes.
func refIdentifier(kind string, nodes []*refNode, pass func(*refNode) bool) msgkey.Field {
	for _, n := range nodes {
		if n.value() != "" && pass(n) {
			return msgkey.Field{kind, refCollapsed(n.attrs["schemeID"]), n.value()}
		}
	}
	return msgkey.Field{kind, ""}
}

func refAny(*refNode) bool { return true }

func refVAT(v string) msgkey.Field {
	v = strings.NewReplacer(" ", "", ".", "", "-", "").Replace(v)
	return msgkey.Field{"vat", strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, v)}
}

func refUBL(value string) string {
	root := refBody(refDocument(value, false))
	kind := ""
	switch {
	case root == nil:
		return ""
	case root.space == refUBLSpace+"Invoice-2" && root.local == "Invoice":
		kind = "inv"
	case root.space == refUBLSpace+"CreditNote-2" && root.local == "CreditNote":
		kind = "cn"
	default:
		return ""
	}
	party := func(path ...string) []*refNode {
		return root.at(append([]string{refCAC + "AccountingSupplierParty", refCAC + "Party"}, path...)...)
	}
	vat := refVAT("")
	for _, s := range party(refCAC + "PartyTaxScheme") {
		tax := s.at(refCAC+"TaxScheme", refCBC+"ID")
		company := s.at(refCBC + "CompanyID")
		if len(tax) > 0 && strings.EqualFold(tax[len(tax)-1].value(), "VAT") && len(company) > 0 && vat[1] == "" {
			vat = refVAT(company[len(company)-1].value())
		}
	}
	date := root.first(refCBC + "IssueDate")
	if !refISODate.MatchString(date) {
		return ""
	}
	return refInvoice("ubl", kind, root.first(refCBC+"ID"), date[:10], vat,
		refIdentifier("reg", party(refCAC+"PartyLegalEntity", refCBC+"CompanyID"), refAny),
		refIdentifier("id", party(refCAC+"PartyIdentification", refCBC+"ID"), func(n *refNode) bool { return refCollapsed(n.attrs["schemeID"]) != "SEPA" }),
		refIdentifier("ep", party(refCBC+"EndpointID"), refAny))
}

func refCII(value string) string {
	root := refBody(refDocument(value, false))
	if root == nil || root.space+" "+root.local != refRSM+"CrossIndustryInvoice" {
		return ""
	}
	head := refRSM + "ExchangedDocument"
	kind := "inv"
	if types := root.at(head, refRAM+"TypeCode"); len(types) > 0 &&
		slices.Contains(strings.Fields("81 83 261 262 296 308 381 396 420 458 532"), types[0].value()) {
		kind = "cn"
	}
	date := ""
	for _, d := range root.at(head, refRAM+"IssueDateTime", refUDT+"DateTimeString") {
		if d.value() == "" {
			continue
		}
		if m := refDate102.FindStringSubmatch(d.value()); m != nil && refCollapsed(d.attrs["format"]) == "102" {
			date = strings.Join(m[1:], "-")
		}
		break
	}
	seller := func(path ...string) []*refNode {
		return root.at(append([]string{
			refRSM + "SupplyChainTradeTransaction", refRAM + "ApplicableHeaderTradeAgreement", refRAM + "SellerTradeParty",
		}, path...)...)
	}
	vat := refVAT("")
	for _, n := range seller(refRAM+"SpecifiedTaxRegistration", refRAM+"ID") {
		if refCollapsed(n.attrs["schemeID"]) == "VA" && vat[1] == "" {
			vat = refVAT(n.value())
		}
	}
	return refInvoice("cii", kind, root.first(head, refRAM+"ID"), date, vat,
		refIdentifier("reg", seller(refRAM+"SpecifiedLegalOrganization", refRAM+"ID"), refAny),
		refIdentifier("id", slices.Concat(seller(refRAM+"GlobalID"), seller(refRAM+"ID")), refAny),
		refIdentifier("ep", seller(refRAM+"URIUniversalCommunication", refRAM+"URIID"), refAny))
}

func refSBDH(value string) string {
	root := refDocument(value, false)
	if root == nil || root.space+" "+root.local != refSH+"StandardBusinessDocument" {
		return ""
	}
	header := refSH + "StandardBusinessDocumentHeader"
	id := root.first(header, refSH+"DocumentIdentification", refSH+"InstanceIdentifier")
	sender := root.first(header, refSH+"Sender", refSH+"Identifier")
	if id == "" || sender == "" {
		return ""
	}
	return msgkey.Encode("sbdh", msgkey.Field{sender}, msgkey.Field{id})
}

func refCXML(value string) string {
	root := refDocument(value, true)
	if root == nil || root.space != "" || root.local != "cXML" || refCollapsed(root.attrs["payloadID"]) == "" {
		return ""
	}
	fields := []msgkey.Field{{refCollapsed(root.attrs["payloadID"])}}
	for _, r := range append(root.at(" Request"), root.at(" Message")...) {
		if refCollapsed(r.attrs["deploymentMode"]) == "test" {
			return msgkey.Encode("cxml", append(fields, msgkey.Field{"T"})...)
		}
	}
	return msgkey.Encode("cxml", fields...)
}
