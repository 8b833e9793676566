// Package msgkey turns a message's octets into its dedup key, or into a closed
// code that says why there is none. It also holds the payload hashes.
//
// An extractor reads the key of one format: header (the explicit key), edifact
// (ISO 9735 UNB), x12 (X12.5 ISA), ubl and cii (EN 16931 invoices), sbdh
// (Peppol's envelope), as4 (ebMS 3.0), as2 (RFC 4130), oftp2 (RFC 5024), sftp,
// rest (Idempotency-Key), json (RFC 6901 pointers), ce (CloudEvents), cxml and
// auto (the extractor of the sniffed format). A Chain tries several in order;
// the first key wins.
//
//	chain, err := msgkey.NewChain(msgkey.Header, msgkey.Auto)
//	found, code := chain.Extract(&msgkey.Message{Value: value, Header: lookup})
//
// Keys are ASCII, at most MaxKey characters, and the encoding is injective:
//
//	key   = scheme ":" field *( "/" field )
//	field = part *( ":" part )        trailing empty parts dropped
//	part  = octets; all but A-Z a-z 0-9 - . _ @ + = , written %XX
//
// A Mode names a canonical form of payloads for the second payload hash: edi,
// c14n, mime-parts and mime-payload.
//
// The package is pure: no I/O, no clock, no state. Work is one linear scan of
// the value, and memory does not grow with the number of segments.
//
// A further format is one file with its extractor and one line in table.
package msgkey
