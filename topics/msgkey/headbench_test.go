package msgkey_test

import (
	"strings"
	"testing"

	"dedupledger/topics/msgkey"
)

// BenchmarkAS4 reads a message of 30 MB with its SOAP part first and last: what
// is measured is the splitting, as the envelope has half a kilobyte.
func BenchmarkAS4(b *testing.B) {
	payload := "--B\r\nContent-Type: application/gzip\r\n\r\n" + strings.Repeat("\x1F\x8B\r\n-\x00payload octets", 30<<20/20) + "\r\n"
	soap := "--B\r\nContent-Type: text/xml\r\nContent-ID: <root@c2>\r\n\r\n" + userEnvelope + "\r\n"
	b.Run("small", func(b *testing.B) { benchmarkHead(b, "as4", userEnvelope, nil) })
	b.Run("30MB", func(b *testing.B) {
		benchmarkHead(b, "as4", soap+payload+"--B--\r\n", map[string]string{"content-type": "multipart/related; boundary=B"})
	})
	b.Run("30MBRootLast", func(b *testing.B) {
		benchmarkHead(b, "as4", payload+soap+"--B--\r\n", map[string]string{"content-type": `multipart/related; boundary="B"; start="<root@c2>"`})
	})
}

func BenchmarkHeads(b *testing.B) {
	for _, c := range headCases()[2:] {
		if c.value == "" || c.extractor == "sftp" {
			b.Run(c.extractor, func(b *testing.B) { benchmarkHead(b, c.extractor, c.value, c.headers) })
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	b.Run("1MB", func(b *testing.B) {
		benchmarkHead(b, "json", `{"lines":[`+strings.Repeat(`{"id":17,"text":"a spare \"part\""},`, 1<<20/36)+`{}],"a":"x","b":{"c":[1]}}`, nil)
	})
}

func benchmarkHead(b *testing.B, extractor, value string, headers map[string]string) {
	b.Helper()
	chain, err := msgkey.Options{JSONPointers: []string{"/a", "/b/c/0"}}.NewChain(extractor)
	if err != nil {
		b.Fatal(err)
	}
	m := &msgkey.Message{Value: []byte(value), Header: fixed(headers)}
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, code := chain.Extract(m); code != "" {
			b.Fatal(code)
		}
	}
}

// BenchmarkHash includes SHA-256.
func BenchmarkHash(b *testing.B) {
	for mode, value := range map[string]string{
		msgkey.HashEDI:         strings.Replace(orders, "UNT", strings.Repeat("LIN+1++4000862141404:EN'\nQTY+21:1.50'\n", 30_000)+"UNT", 1),
		msgkey.HashC14N:        "<a xmlns='urn:u'>" + strings.Repeat(`<b c="1"><d>text of a line</d></b>`, 30_000) + "</a>",
		msgkey.HashMIMEParts:   mimeOf("B", userEnvelope, "", strings.Repeat("payload octets\r\n", 60_000)),
		msgkey.HashMIMEPayload: mimeOf("B", userEnvelope, "", gzipped("", strings.Repeat("payload octets\r\n", 60_000))),
	} {
		b.Run(mode, func(b *testing.B) {
			m, err := msgkey.NewMode(mode)
			if err != nil {
				b.Fatal(err)
			}
			msg := &msgkey.Message{Value: []byte(value)}
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := m.Canonical(msg); !ok {
					b.Fatal("not read")
				}
			}
		})
	}
}
