package msgkey_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

const ublLine = `  <cac:InvoiceLine>
    <cbc:ID>1</cbc:ID>
    <cbc:InvoicedQuantity unitCode="EA">10</cbc:InvoicedQuantity>
    <cbc:LineExtensionAmount currencyID="EUR">250.00</cbc:LineExtensionAmount>
    <cac:Item><cbc:Name>Schraube &amp; Mutter M8, für außen</cbc:Name><cac:SellersItemIdentification><cbc:ID>4711</cbc:ID></cac:SellersItemIdentification></cac:Item>
    <cac:Price><cbc:PriceAmount currencyID="EUR">25.00</cbc:PriceAmount></cac:Price>
  </cac:InvoiceLine>
`

const ciiLine = `    <ram:IncludedSupplyChainTradeLineItem>
      <ram:AssociatedDocumentLineDocument><ram:LineID>1</ram:LineID></ram:AssociatedDocumentLineDocument>
      <ram:SpecifiedTradeProduct><ram:Name>Schraube &amp; Mutter M8, für außen</ram:Name></ram:SpecifiedTradeProduct>
      <ram:SpecifiedLineTradeDelivery><ram:BilledQuantity unitCode="H87">10</ram:BilledQuantity></ram:SpecifiedLineTradeDelivery>
    </ram:IncludedSupplyChainTradeLineItem>
`

// attachment is what invoices carry their pictures in: one long text.
var attachment = "<cbc:Note>" + strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlq\n", 1000) + "</cbc:Note>"

// repeated puts copies of more in front of a mark until the document has about
// that many octets.
func repeated(document, mark, more string, size int) string {
	return strings.Replace(document, mark, strings.Repeat(more, size/len(more))+mark, 1)
}

func largeUBL(size int) string { return repeated(ublInvoice, "  <cac:InvoiceLine>", ublLine, size) }

func BenchmarkUBL(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmark(b, ublInvoice) })
	b.Run("1MB", func(b *testing.B) { benchmark(b, largeUBL(1<<20)) })
	b.Run("attachments", func(b *testing.B) { benchmark(b, repeated(ublInvoice, "  <cac:InvoiceLine>", attachment, 1<<20)) })
	b.Run("enveloped", func(b *testing.B) { benchmark(b, enveloped(largeUBL(1<<20))) })
}

func BenchmarkCII(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmark(b, ciiInvoice) })
	b.Run("1MB", func(b *testing.B) {
		benchmark(b, repeated(ciiInvoice, "    <ram:IncludedSupplyChainTradeLineItem>", ciiLine, 1<<20))
	})
}

func BenchmarkSBDH(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmark(b, sbdhEnvelope) })
	order := strings.NewReplacer("Invoice-2", "Order-2", "<Invoice", "<Order", "</Invoice>", "</Order>").Replace(largeUBL(1 << 20))
	b.Run("1MB", func(b *testing.B) { benchmark(b, enveloped(order)) })
}

func BenchmarkCXML(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmark(b, cxmlOrder) })
	line := `<ItemOut quantity="10" lineNumber="1"><ItemID><SupplierPartID>4711</SupplierPartID></ItemID></ItemOut>` + "\n"
	b.Run("1MB", func(b *testing.B) { benchmark(b, repeated(cxmlOrder, "</OrderRequest>", line, 1<<20)) })
}

// TestXMLMemory holds the bounds: 40 allocations for a key, and 10 MB beyond
// the record for one of 30 MB. It must not run beside others.
func TestXMLMemory(t *testing.T) {
	chain, err := msgkey.NewChain(msgkey.Header, msgkey.Auto)
	require.NoError(t, err)
	for _, d := range xmlDocuments() {
		m := &msgkey.Message{Value: []byte(d.value)}
		allocations := testing.AllocsPerRun(10, func() { chain.Extract(m) })
		t.Logf("%s: %.0f allocations", d.format, allocations)
		require.LessOrEqual(t, allocations, 40.0, d.format)
	}
	m := &msgkey.Message{Value: []byte(largeUBL(30 << 20))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, code := chain.Extract(m)
	runtime.ReadMemStats(&after)
	require.Empty(t, code)
	t.Logf("30 MB: %d octets allocated", after.TotalAlloc-before.TotalAlloc)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(10<<20))
}
