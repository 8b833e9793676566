package msgkey_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// xmlDocument is a document and the octets in it that identify it.
type xmlDocument struct {
	format, value, key string
	identity           []string // each within tags or quotes that make it unique
}

func xmlDocuments() []xmlDocument {
	const invoiceKey = "inv/vat:DE811569869/RE-2026-0042/2026-11-02"
	ubl := strings.ReplaceAll(ublInvoice, "<!-- - -->", "")
	ubl = strings.NewReplacer("RE-2026 0042", "RE-2026-0042", "de 811.569-869", "DE811569869").Replace(ubl)
	ublParts := []string{"<cbc:ID>RE-2026-0042<", "<cbc:IssueDate>2026-11-02", "<cbc:CompanyID>DE811569869<"}
	return []xmlDocument{
		{msgkey.UBL, ubl, "ubl:" + invoiceKey, ublParts},
		{msgkey.UBL, enveloped(ubl), "ubl:" + invoiceKey, ublParts},
		{msgkey.CII, ciiInvoice, "cii:" + invoiceKey, []string{"<ram:ID>RE-2026-0042<", ">20261102<", `"VA">DE811569869<`}},
		{msgkey.SBDH, sbdhEnvelope, "sbdh:0088%3A4098765000014/7d0c3a5e-2f5b", []string{">0088:4098765000014<", ">7d0c3a5e-2f5b<"}},
		{msgkey.CXML, cxmlOrder, "cxml:1793612345.512.83749@acme.example", []string{`"1793612345.512.83749@acme.example"`}},
	}
}

// TestXMLIdentifyingOctetsChangeTheKey changes each octet of what identifies a
// document.
func TestXMLIdentifyingOctetsChangeTheKey(t *testing.T) {
	t.Parallel()
	for _, d := range xmlDocuments() {
		requireKey(t, d.format, d.key, d.value)
		for _, id := range d.identity {
			start := strings.IndexByte(id, '>') + 1
			end := strings.LastIndexAny(id, `<"`)
			if start == 0 {
				start = 1
			}
			if end < start {
				end = len(id)
			}
			seen := map[string]bool{d.key: true}
			for i := start; i < end; i++ {
				other := []byte(id)
				other[i] ^= 1 // of letters and digits another one
				changed := strings.Replace(d.value, id, string(other), 1)
				require.NotEqual(t, d.value, changed, id)
				key, code := keyOf(t, d.format, []byte(changed))
				require.True(t, code != "" || !seen[key], "%q gives %q again", other, key)
				seen[key] = true
			}
		}
	}
}

// TestTruncatedXMLNeverGivesTheKey cuts each document at every octet. Behind
// the root element's end tag nothing counts.
func TestTruncatedXMLNeverGivesTheKey(t *testing.T) {
	t.Parallel()
	check := func(format, value, want string) {
		complete := strings.LastIndexByte(value, '>') + 1
		chain, err := msgkey.NewChain(format)
		require.NoError(t, err)
		for cut := range len(value) {
			found, code := chain.Extract(&msgkey.Message{Value: []byte(value[:cut])})
			if cut < complete && code == "" || cut >= complete && found.Key != want {
				require.Failf(t, "cut", "%s at %d gives %q, %q", format, cut, found.Key, code)
			}
		}
	}
	for _, d := range xmlDocuments() {
		check(d.format, d.value, d.key)
	}
	for _, v := range readVectors(t) {
		if value := v.value(t); v.Key != "" && v.Format != "as4" && bytes.HasPrefix(value, []byte("<")) {
			check(v.Format, string(value), v.Key)
		}
	}
}

// TestXMLFormDoesNotChangeTheKey writes one document in other forms that XML
// holds for the same.
func TestXMLFormDoesNotChangeTheKey(t *testing.T) {
	t.Parallel()
	for _, d := range xmlDocuments() {
		declaration, root, ok := strings.Cut(d.value, "?>\n")
		if !ok {
			declaration, root = "", d.value
		} else {
			declaration += "?>\n"
		}
		for _, form := range []string{
			"\xEF\xBB\xBF\r\n \x00" + d.value + "\r\n\x00\x1A",
			strings.ReplaceAll(d.value, "\n", "\r\n"),
			strings.ReplaceAll(d.value, "\n", "\n\n\t "),
			root,
			strings.ReplaceAll(d.value, ">\n", "><!-- comment --><?pi?>\n"),
			declaration + "<!-- in front -->" + root + "<?behind?>",
			strings.NewReplacer("cbc:", "b:", ":cbc=", ":b=", "ram:", "r:", ":ram=", ":r=", "sh:", "s:", ":sh=", ":s=").Replace(d.value),
			strings.NewReplacer("2026", "&#50;02&#x36;", "4098", "&#x34;098").Replace(root),
			strings.NewReplacer("<cbc:ID>RE-2026-0042<", "<cbc:ID><![CDATA[RE-2026]]>-0042<", ">7d0c3a5e-2f5b<", ">\n\t7d0c3a5e<![CDATA[-2f5b]]> <").
				Replace(d.value),
		} {
			requireKey(t, d.format, d.key, form)
		}
	}
}

// TestAutoChoosesByTheRoot hands every document to auto and to a chain of all
// that read XML.
func TestAutoChoosesByTheRoot(t *testing.T) {
	t.Parallel()
	for _, chain := range [][]string{
		{msgkey.Header, msgkey.Auto},
		{msgkey.Header, msgkey.EDIFACT, msgkey.X12, msgkey.UBL, msgkey.CII, msgkey.SBDH, msgkey.CXML},
	} {
		c, err := msgkey.NewChain(chain...)
		require.NoError(t, err)
		for _, d := range xmlDocuments() {
			found, code := c.Extract(&msgkey.Message{Value: []byte(d.value)})
			require.Empty(t, code)
			require.Equal(t, d.key, found.Key)
			require.Equal(t, d.format, found.Extractor)
		}
		for value, want := range map[string]msgkey.Code{
			"<Invoice/>":             msgkey.KeyNotFound,
			"<Invoice":               msgkey.XMLNotWellFormed,
			"<!DOCTYPE html><html/>": msgkey.XMLDTDForbidden,
			"<!DOCTYPE cXML><xCML/>": msgkey.KeyNotFound,
			"<!DOCTYPE cXML [<!ENTITY a ''>]><cXML/>":           msgkey.XMLDTDForbidden,
			"<!DOCTYPE cXML SYSTEM 'x'><cXML/>":                 msgkey.CXMLMissingPayloadID,
			strings.ReplaceAll(ublInvoice, "IssueDate", "Date"): msgkey.UBLMissingIssueDate,
			strings.ReplaceAll(ciiInvoice, "ram:ID", "ram:No"):  msgkey.CIIMissingID,
		} {
			_, code := c.Extract(&msgkey.Message{Value: []byte(value)})
			require.Equal(t, want, code, "%.60q", value)
		}
	}
	// An envelope is the next best where the invoice in it has no key.
	c, err := msgkey.NewChain(msgkey.Auto)
	require.NoError(t, err)
	found, code := c.Extract(&msgkey.Message{Value: []byte(enveloped(strings.ReplaceAll(ublInvoice, "IssueDate", "Date")))})
	require.Empty(t, code)
	require.Equal(t, "sbdh:0088%3A4098765000014/7d0c3a5e-2f5b", found.Key)
}

// TestHostileXML hands every extractor what must be refused.
func TestHostileXML(t *testing.T) {
	t.Parallel()
	for _, name := range []string{msgkey.UBL, msgkey.CII, msgkey.SBDH, msgkey.CXML, msgkey.Auto} {
		for _, value := range hostile() {
			_, code := keyOf(t, name, []byte(value))
			require.NotEmpty(t, code, "%s: %.60q", name, value)
		}
	}
	long := strings.Repeat("1", 64<<10)
	for code, value := range map[msgkey.Code]string{
		"":                strings.Replace(cxmlOrder, "1793612345.512.83749@acme.example", long, 1),
		msgkey.XMLTooDeep: strings.Replace(cxmlOrder, "1793612345.512.83749@acme.example", long+"1", 1),
	} {
		_, got := keyOf(t, msgkey.CXML, []byte(value))
		require.Equal(t, code, got)
	}
	for code, value := range map[msgkey.Code]string{
		"":                strings.Replace(sbdhEnvelope, "7d0c3a5e-2f5b", long, 1),
		msgkey.XMLTooDeep: strings.Replace(sbdhEnvelope, "7d0c3a5e-2f5b", "<![CDATA["+long+"]]>1", 1),
	} {
		_, got := keyOf(t, msgkey.SBDH, []byte(value))
		require.Equal(t, code, got)
	}
}
