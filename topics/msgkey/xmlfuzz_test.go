package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// Documents for tests and seeds: of each format one with everything that is
// read, and much that must not be.
const (
	ublInvoice = `<?xml version="1.0" encoding="UTF-8"?>
<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
  xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
  xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
  <e:UBLExtensions xmlns:e="urn:e"><cbc:ID>no</cbc:ID></e:UBLExtensions>
  <cbc:ID>RE-2026 <!-- - -->0042</cbc:ID>
  <cbc:IssueDate>2026-11-02+01:00</cbc:IssueDate>
  <cac:OrderReference><cbc:ID>no</cbc:ID></cac:OrderReference>
  <cac:AccountingSupplierParty><cac:Party>
    <cbc:EndpointID schemeID="9930">DE811569869</cbc:EndpointID>
    <cac:PartyIdentification><cbc:ID schemeID="SEPA">DE98ZZZ</cbc:ID></cac:PartyIdentification>
    <cac:PartyIdentification><cbc:ID schemeID="0088">4098765000014</cbc:ID></cac:PartyIdentification>
    <cac:PartyTaxScheme><cbc:CompanyID>201/113</cbc:CompanyID><cac:TaxScheme><cbc:ID>FC</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>
    <cac:PartyTaxScheme><cbc:CompanyID>de 811.569-869</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>
    <cac:PartyLegalEntity><cbc:CompanyID schemeID="0002">552100554</cbc:CompanyID></cac:PartyLegalEntity>
  </cac:Party></cac:AccountingSupplierParty>
  <cac:AccountingCustomerParty><cac:Party><cbc:EndpointID schemeID="9930">no</cbc:EndpointID></cac:Party></cac:AccountingCustomerParty>
  <cac:InvoiceLine><cbc:ID>no</cbc:ID><cbc:Note><![CDATA[<cbc:ID>no</cbc:ID>]]></cbc:Note></cac:InvoiceLine>
</Invoice>
`
	ciiInvoice = `<?xml version='1.0' encoding='UTF-8'?>
<rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
  xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"
  xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100">
  <rsm:ExchangedDocumentContext><ram:ID>no</ram:ID></rsm:ExchangedDocumentContext>
  <rsm:ExchangedDocument><ram:ID>RE-2026-0042</ram:ID><ram:TypeCode>380</ram:TypeCode>
    <ram:IssueDateTime><udt:DateTimeString format="102">20261102</udt:DateTimeString></ram:IssueDateTime></rsm:ExchangedDocument>
  <rsm:SupplyChainTradeTransaction>
    <ram:IncludedSupplyChainTradeLineItem><ram:ID>no</ram:ID></ram:IncludedSupplyChainTradeLineItem>
    <ram:ApplicableHeaderTradeAgreement><ram:SellerTradeParty>
      <ram:ID>77</ram:ID><ram:GlobalID schemeID="0088">4098765000014</ram:GlobalID>
      <ram:SpecifiedLegalOrganization><ram:ID schemeID="0002">552100554</ram:ID></ram:SpecifiedLegalOrganization>
      <ram:URIUniversalCommunication><ram:URIID schemeID="EM">a@b.example</ram:URIID></ram:URIUniversalCommunication>
      <ram:SpecifiedTaxRegistration><ram:ID schemeID="FC">201/113</ram:ID></ram:SpecifiedTaxRegistration>
      <ram:SpecifiedTaxRegistration><ram:ID schemeID="VA">DE811569869</ram:ID></ram:SpecifiedTaxRegistration>
    </ram:SellerTradeParty><ram:BuyerTradeParty><ram:ID>no</ram:ID></ram:BuyerTradeParty></ram:ApplicableHeaderTradeAgreement>
  </rsm:SupplyChainTradeTransaction>
</rsm:CrossIndustryInvoice>
`
	sbdhEnvelope = `<sh:StandardBusinessDocument xmlns:sh="http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader">
  <sh:StandardBusinessDocumentHeader><sh:HeaderVersion>1.0</sh:HeaderVersion>
    <sh:Sender><sh:Identifier Authority="iso6523-actorid-upis">0088:4098765000014</sh:Identifier></sh:Sender>
    <sh:Receiver><sh:Identifier Authority="iso6523-actorid-upis">no</sh:Identifier></sh:Receiver>
    <sh:DocumentIdentification><sh:InstanceIdentifier>7d0c3a5e-2f5b</sh:InstanceIdentifier></sh:DocumentIdentification>
    <sh:BusinessScope><sh:Scope><sh:InstanceIdentifier>no</sh:InstanceIdentifier></sh:Scope></sh:BusinessScope>
  </sh:StandardBusinessDocumentHeader>
  <Order xmlns="urn:x"/>
</sh:StandardBusinessDocument>
`
	cxmlOrder = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE cXML SYSTEM "http://xml.cxml.org/schemas/cXML/1.2.041/cXML.dtd">
<cXML payloadID="1793612345.512.83749@acme.example" timestamp="2026-11-02T09:30:00+01:00" xml:lang="en">
  <Header><From><Credential domain="NetworkId"><Identity>AN01</Identity></Credential>
    <Credential domain="DUNS"><Identity>no</Identity></Credential></From>
    <To><Credential domain="DUNS"><Identity>no</Identity></Credential></To></Header>
  <Request deploymentMode="production"><OrderRequest><OrderRequestHeader orderID="PO-7731" type="new"/></OrderRequest></Request>
</cXML>
`
)

// enveloped puts a document into an SBDH envelope.
func enveloped(document string) string {
	_, root, _ := strings.Cut(document, "?>\n")
	return strings.Replace(sbdhEnvelope, `<Order xmlns="urn:x"/>`, root, 1)
}

// hostile is what every extractor of XML must refuse in bounded time and memory.
func hostile() []string {
	return []string{
		strings.Repeat("<a>", 10_000), nested(10_000), "<a" + attributes(1000) + "/>", "<a>\x00</a>", "<a>\xFF</a>", "\x00<\x00a\x00/\x00>",
		"<!DOCTYPE lolz [<!ENTITY a 'lol'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;'>]><lolz>&c;</lolz>",
		"<!DOCTYPE cXML [<!ENTITY % p SYSTEM 'file:///etc/passwd'> %p;]><cXML payloadID='1'/>",
		"<a>" + strings.Repeat("&", 10_000), "<a>" + strings.Repeat("]", 10_000), "<a>" + strings.Repeat("<!--", 3000), "<a " + strings.Repeat("xmlns:p='u' ", 300) + "/>",
	}
}

func fuzzXML(f *testing.F, name string, reference func(string) string, seeds ...string) {
	addVectors(f, name)
	for _, s := range append(seeds, hostile()...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		// What is compared in TestXML alone: other encodings, odd declarations.
		if strings.Contains(string(value), "encoding") && !strings.Contains(string(value), `encoding="UTF-8"?>`) {
			return
		}
		key, code := keyOf(t, name, value)
		if code == msgkey.XMLTooDeep || code == msgkey.XMLEncoding || strings.Contains(string(value), "<?xml") && code == msgkey.XMLNotWellFormed {
			return
		}
		want := reference(string(value))
		if name == msgkey.CXML && strings.Contains(string(value), "<!DOCTYPE") && want == "" {
			return // the reference knows one form of DOCTYPE
		}
		require.Equal(t, want, key, "code %q", code)
		if key != "" {
			requireRoundTrip(t, key)
		}
	})
}

func FuzzUBL(f *testing.F) {
	fuzzXML(f, msgkey.UBL, refUBL, ublInvoice, enveloped(ublInvoice),
		strings.NewReplacer("Invoice-2", "CreditNote-2", "<Invoice", "<CreditNote", "</Invoice", "</CreditNote").Replace(ublInvoice),
		strings.ReplaceAll(ublInvoice, "VAT", "GST"), strings.ReplaceAll(ublInvoice, "cbc:CompanyID", "cbc:Company"))
}

func FuzzCII(f *testing.F) {
	fuzzXML(f, msgkey.CII, refCII, ciiInvoice, enveloped(ciiInvoice), strings.ReplaceAll(ciiInvoice, "380", "381"),
		strings.ReplaceAll(ciiInvoice, "VA", "FC"), strings.ReplaceAll(ciiInvoice, "ram:GlobalID", "ram:Global"))
}

func FuzzSBDH(f *testing.F) { fuzzXML(f, msgkey.SBDH, refSBDH, sbdhEnvelope, enveloped(ublInvoice)) }

func FuzzCXML(f *testing.F) {
	fuzzXML(f, msgkey.CXML, refCXML, cxmlOrder, strings.ReplaceAll(cxmlOrder, "production", "test"),
		`<cXML payloadID=" a&#x20; b "><Message deploymentMode="test"/></cXML>`)
}
