package msgkey

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime/quotedprintable"
)

// transferEncoding is how a part's body was made fit for transport (RFC 2045
// §6).
type transferEncoding uint8

const (
	identity transferEncoding = iota // 7bit, 8bit, binary
	base64Encoding
	quotedPrintable
	unknownEncoding
)

func (p part) encoding() transferEncoding {
	switch string(bytes.ToLower(headerField(p.header, "content-transfer-encoding"))) {
	case "", "7bit", "8bit", "binary":
		return identity
	case "base64":
		return base64Encoding
	case "quoted-printable":
		return quotedPrintable
	}
	return unknownEncoding
}

// reader gives the body without its transfer encoding; false for one that is
// unknown.
func (p part) reader() (io.Reader, bool) {
	body := bytes.NewReader(p.body)
	switch p.encoding() {
	case base64Encoding:
		return base64.NewDecoder(base64.StdEncoding, body), true
	case quotedPrintable:
		return quotedprintable.NewReader(body), true
	case unknownEncoding:
		return nil, false
	case identity:
	}
	return body, true
}
