package msgkey_test

import (
	"strings"
	"testing"

	"dedupledger/topics/msgkey"
)

func BenchmarkEDIFACT(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmark(b, orders) })
	body := strings.Repeat("LIN+1++4000862141404:EN'\nFTX+AAI+++IT?'S A SPARE PART'\n", 20_000)
	b.Run("1MB", func(b *testing.B) { benchmark(b, strings.Replace(orders, "UNT+", body+"UNT+", 1)) })
}

func BenchmarkX12(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmark(b, invoice) })
	body := strings.Repeat("IT1*1*10*EA*2.50**UP*400086214140~\nPID*F****SPARE PART~\n", 20_000)
	large := strings.Replace(invoice, "SE*", body+"SE*", 1)
	b.Run("1MB", func(b *testing.B) { benchmark(b, large) })
	b.Run("wrapped", func(b *testing.B) { benchmark(b, wrap(strings.ReplaceAll(large, "\n", ""), 80, "\n")) })
}

func BenchmarkHeader(b *testing.B) {
	c, err := msgkey.NewChain(msgkey.Header, msgkey.Auto)
	if err != nil {
		b.Fatal(err)
	}
	m := message(nil, map[string]string{"dedup-key": "ORD-2026/11:7"})
	b.ReportAllocs()
	for b.Loop() {
		if _, code := c.Extract(m); code != "" {
			b.Fatal(code)
		}
	}
}

func benchmark(b *testing.B, value string) {
	b.Helper()
	c, err := msgkey.NewChain(msgkey.Header, msgkey.Auto)
	if err != nil {
		b.Fatal(err)
	}
	m := &msgkey.Message{Value: []byte(value)}
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, code := c.Extract(m); code != "" {
			b.Fatal(code)
		}
	}
}
