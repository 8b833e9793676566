package msgkey

import (
	"bytes"
	"io"
)

// maxEncodedSOAP is the most octets of a SOAP part with a transfer encoding: it
// is copied, and a few kilobytes are usual.
const maxEncodedSOAP = 4 << 20

// fromAS4 is the extractor "as4": as4:{PartyId of From}/{MessageId} of the one
// eb:UserMessage. The AS4 profile of ebMS 3.0 detects duplicates by the
// MessageId, which a retry keeps; RefToMessageId and the Message-ID of MIME are
// other things. With From no access point can take another's id.
func fromAS4(m *Message, p payload, with *settings) (Found, Code, bool) {
	contentType, _ := m.header(HeaderContentType)
	if p.format == Empty {
		return Found{}, EmptyPayload, true
	}
	e, ok := readEntity(contentType, p)
	if !ok {
		return Found{}, AS4BadMultipart, true
	}
	if !e.mime && p.format != FormatXML {
		return Found{}, AS4NoSOAPPart, false
	}
	soap, code := e.soapPart(with.Lenient)
	if code != "" {
		return Found{}, code, true
	}
	from, id, code := as4FromSOAP(soap)
	if code != "" {
		return Found{}, code, e.mime || code != AS4NotSOAP
	}
	return newKey("as4", Field{from}, Field{id}), "", true
}

// soapPart finds the SOAP part. Strict, the closing delimiter must stand behind
// it, or a message that was cut in a later part would take the key of the
// complete one; lenient, any delimiter.
func (e *entity) soapPart(lenient bool) ([]byte, Code) {
	root := e.lone
	if e.parts {
		var closed, ok bool
		if root, closed, ok = e.root(); !ok || !closed && !lenient {
			return nil, AS4BadMultipart
		}
	}
	soap, ok := root.decoded(maxEncodedSOAP)
	if !ok || e.mime && !bytes.HasPrefix(clean(soap).data, []byte("<")) {
		return nil, AS4NoSOAPPart
	}
	return soap, ""
}

// root is the part whose Content-ID is start, else the first (RFC 2387 §3.2).
// It reads all parts, up to the closing delimiter or the last that is there.
func (e *entity) root() (root part, closed, ok bool) {
	m := e.multipart
	for named := false; !closed; {
		p, last, more := m.next()
		if !more {
			return root, false, ok
		}
		closed = last
		first := !ok
		if is := len(m.start) > 0 && bytes.Equal(p.contentID(), m.start); first || is && !named {
			root, ok, named = p, true, is
		}
	}
	return root, closed, ok
}

func (p part) contentID() []byte { return withoutBrackets(headerField(p.header, "content-id")) }

// decoded takes the transfer encoding off a body; one that has any may have at
// most limit octets. ok is false if it is malformed or unknown.
func (p part) decoded(limit int) (body []byte, ok bool) {
	if p.encoding() == identity {
		return p.body, true
	}
	from, ok := p.reader()
	if !ok || len(p.body) > limit {
		return nil, false
	}
	body, err := io.ReadAll(from)
	return body, err == nil
}
