package msgkey

import (
	"bufio"
	"bytes"
)

// What tests of the package look at from outside of it.

// WellFormed reads a document with any root element to its end.
func WellFormed(data []byte) (_ Code, utf8 bool) {
	w := newWalker(data, []step{{from: document, local: "*", to: firstOwn}}, KeyNotFound)
	for {
		if at, _, code := w.next(); at == nowhere || code != "" {
			return code, w.charset == utf8Charset
		}
	}
}

// AS4FromSOAP is what as4 reads of its SOAP part.
func AS4FromSOAP(data []byte) (from, messageID string, code Code) { return as4FromSOAP(data) }

// Form is what Canonical hashes.
func (m Mode) Form(msg *Message) ([]byte, bool) {
	var b bytes.Buffer
	ok := m.write != nil && m.form(&b, msg)
	return b.Bytes(), ok
}

// PayloadFormUpTo is the form of mime-payload with another limit on what the
// parts unpack to.
func PayloadFormUpTo(msg *Message, budget int64) bool {
	var b bytes.Buffer
	return payloadFormUpTo(bufio.NewWriter(&b), msg, clean(msg.Value), budget)
}
