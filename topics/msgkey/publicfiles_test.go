package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

const (
	bundled = `<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/" xmlns:eb="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/"><S:Header><eb:Messaging>
<eb:SignalMessage><eb:MessageInfo><eb:MessageId>receipt-2@hub</eb:MessageId><eb:RefToMessageId>m-1@hub</eb:RefToMessageId></eb:MessageInfo><eb:Receipt/></eb:SignalMessage>
<eb:UserMessage><eb:MessageInfo><eb:MessageId>m-1@acme</eb:MessageId></eb:MessageInfo>
<eb:PartyInfo><eb:From><eb:PartyId type="urn:x">ACME</eb:PartyId></eb:From></eb:PartyInfo></eb:UserMessage>
</eb:Messaging></S:Header><S:Body/></S:Envelope>`
	// S004 as two elements: 0020 stands one element further than the standard has it.
	splitStamp = "UNB+ANSI:1+ACME+HUB+261102+0930+17'UNH+1+MEDRPT:1:901:UN'UNT+2+1'UNZ+1+17'"
	// a report in lines, in an envelope: no line ends with the terminator.
	lines = "UNB+UNOC:3+LAB+HUB+261102:0930+17'\nH`Doe`Jane\nE`1`X``\nUNZ+1+17'"
)

// TestShapesOfPublicFiles keeps what files of other projects have taught
// (docs/message-keys.md, "Public files tried"). The octets are this project's.
func TestShapesOfPublicFiles(t *testing.T) {
	t.Parallel()
	swap := func(document string, pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			require.Contains(t, document, pairs[i])
		}
		return strings.NewReplacer(pairs...).Replace(document)
	}
	const vat, fc = `<ram:SpecifiedTaxRegistration><ram:ID schemeID="VA">DE811569869</ram:ID></ram:SpecifiedTaxRegistration>`, "201/113"
	onlyFC := swap(ciiInvoice, vat, "", `<ram:ID>77</ram:ID><ram:GlobalID schemeID="0088">4098765000014</ram:GlobalID>`, "",
		`<ram:SpecifiedLegalOrganization><ram:ID schemeID="0002">552100554</ram:ID></ram:SpecifiedLegalOrganization>`, "",
		`<ram:URIUniversalCommunication><ram:URIID schemeID="EM">a@b.example</ram:URIID></ram:URIUniversalCommunication>`, "")
	require.Contains(t, onlyFC, fc)
	short := swap(invoice, "*00*          *00*", "*00*         *00*")
	for name, tt := range map[string]struct {
		value, strict, lenient string // a key, or a code
	}{
		"the stamp in two elements":         {splitStamp, "edifact.unz_mismatch", "edifact:ACME/HUB/0930"}, // of use to nobody: the page warns
		"lines in an envelope":              {lines, "edifact.no_unz", "edifact:LAB/HUB/17"},
		"UNZ has another number":            {swap(orders, "UNZ+1+77001", "UNZ+1+1"), "edifact.unz_mismatch", "edifact:SENDER:14/HUB:14/77001"},
		"line ends in place of terminators": {strings.ReplaceAll(orders, "'\n", "\n"), "edifact.unb_unterminated", "edifact.unb_unterminated"},
		"UNB with nothing in it":            {"UNB+UNOD'\nUNH+1'\nUNZ+1'", "edifact.missing_sender", "edifact.missing_sender"},
		"a second UNB for repair":           {"UNA:+.? '\nUNB+++++4'\n" + orders, "edifact.bad_syntax_id", "edifact.bad_syntax_id"},
		"ISA one column short":              {short, "x12.isa_layout", "x12:ZZ:ACMEBUYER/01:009876543/000004711"},
		"ISA padded by no-break spaces":     {swap(invoice, "ACMEBUYER      ", "ACMEBUYER \u00a0  \u00a0 "), "x12.isa_layout", "x12:ZZ:ACMEBUYER%20%C2%A0%20%20%C2%A0/01:009876543/000004711"},
		"IEA has the group's number":        {swap(invoice, "IEA*1*000004711", "IEA*1*000000088"), "x12.iea_mismatch", "x12:ZZ:ACMEBUYER/01:009876543/000004711"},
		"a signal bundled in front":         {bundled, "as4:ACME/m-1@acme", "as4:ACME/m-1@acme"},
		"a seller with a tax number alone":  {onlyFC, "cii.missing_seller", "cii.missing_seller"},
		"a year of five digits":             {swap(ublInvoice, "2026-11-02+01:00", "20026-11-02"), "ubl.bad_issue_date", "ubl.bad_issue_date"},
		"text in the envelope":              {swap(sbdhEnvelope, `<Order xmlns="urn:x"/>`, "text"), "sbdh:0088%3A4098765000014/7d0c3a5e-2f5b", "sbdh:0088%3A4098765000014/7d0c3a5e-2f5b"},
		"a licence before the declaration":  {"<!-- licence -->\n" + ublInvoice, "xml.not_well_formed", "xml.not_well_formed"},
		"a cXML catalogue":                  {"<!DOCTYPE Index SYSTEM \"http://xml.cxml.org/schemas/cXML/1.2.063/cXML.dtd\">\n<Index/>", "xml.dtd_forbidden", "xml.dtd_forbidden"},
		"an invoice in a PDF":               {"%PDF-1.6\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<\n", "key.not_found", "key.not_found"},
		"TRADACOMS with EDIFACT's mark":     {"STX+ANA:1+5000000000000:ACME'", "key.not_found", "key.not_found"},
		"a certificate in a folder":         {"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "as4.bad_multipart", "as4.bad_multipart"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.strict, keyOrCode(t, msgkey.Options{}, tt.value))
			require.Equal(t, tt.lenient, keyOrCode(t, msgkey.Options{Lenient: true}, tt.value))
		})
	}
}

func keyOrCode(t *testing.T, o msgkey.Options, value string) string {
	t.Helper()
	c, err := o.NewChain(msgkey.Header, msgkey.Auto)
	require.NoError(t, err)
	found, code := c.Extract(message([]byte(value), nil))
	return found.Key + string(code)
}

// TestAS2HeadersOfPublicFiles: products in the field spell the two headers so.
func TestAS2HeadersOfPublicFiles(t *testing.T) {
	t.Parallel()
	c, err := msgkey.NewChain(msgkey.AS2)
	require.NoError(t, err)
	for id, key := range map[string]string{
		"0574493161569973Sterling20574493161569973ACME":         "as2:ACME/0574493161569973Sterling20574493161569973ACME",
		"<0dbb26a8046f4887_-1454_14eb-7e99@0dbb26a8046f_-7e98>": "as2:ACME/0dbb26a8046f4887_-1454_14eb-7e99@0dbb26a8046f_-7e98",
		"<ph-OpenAS2-24092019223921+0200-0150@ACME_HUB>":        "as2:ACME/ph-OpenAS2-24092019223921+0200-0150@ACME_HUB",
	} {
		found, code := c.Extract(message([]byte("payload"), map[string]string{"Message-ID": id, "AS2-From": "ACME"}))
		require.Empty(t, code)
		require.Equal(t, key, found.Key)
	}
}
