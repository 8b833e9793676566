package msgkey

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"hash"
	"io"
)

// maxUnpacked is how many octets the parts of a message may unpack to.
const maxUnpacked = 256 << 20

// Octets before the hash of a part.
const (
	partAsIs     = 'p'
	partUnpacked = 'g'
)

// partsForm writes the hash of each part, in order, without its transfer
// encoding. Boundary, preamble and part headers do not count. It gives up on a
// message that is not complete, or has no parts.
func partsForm(w *bufio.Writer, m *Message, p payload) bool {
	return eachPart(m, p, func(_ *entity, part part) bool {
		h := sha256.New()
		return copyPart(h, part) && writePart(w, partAsIs, h)
	})
}

// payloadForm leaves the SOAP part out, whose time stamps and signature are new
// in each transmission, and unpacks gzip, whose header has a time. Encrypted
// parts stay encrypted: nothing here has a key. Without other parts there is
// nothing to compare.
func payloadForm(w *bufio.Writer, m *Message, p payload) bool {
	return payloadFormUpTo(w, m, p, maxUnpacked)
}

func payloadFormUpTo(w *bufio.Writer, m *Message, p payload, budget int64) bool {
	written := 0
	ok := eachPart(m, p, func(e *entity, part part) bool {
		if e.isRoot(part) && part.isSOAP() {
			return true
		}
		written++
		return writePayload(w, part, &budget)
	})
	return ok && written > 0
}

// eachPart shows the parts of a complete message.
func eachPart(m *Message, p payload, show func(*entity, part) bool) bool {
	contentType, _ := m.header(HeaderContentType)
	e, ok := readEntity(contentType, p)
	if !ok || !e.mime {
		return false
	}
	if !e.parts {
		return show(&e, e.lone)
	}
	if e.lone, _, ok = e.root(); !ok {
		return false
	}
	for all, closed := e.multipart, false; !closed; {
		var next part
		if next, closed, ok = all.next(); !ok || !show(&e, next) {
			return false
		}
	}
	return true
}

// isRoot compares places, not contents.
func (e *entity) isRoot(p part) bool {
	return len(p.body) > 0 && len(e.lone.body) > 0 && &p.body[0] == &e.lone.body[0]
}

func (p part) isSOAP() bool {
	switch mediaType(headerField(p.header, HeaderContentType)) {
	case "", "application/soap+xml", "text/xml", "application/xml", "application/xop+xml":
		soap, ok := p.decoded(maxEncodedSOAP)
		return ok && bytes.HasPrefix(clean(soap).data, []byte("<"))
	}
	return false
}

// copyPart hashes a part without its transfer encoding.
func copyPart(to io.Writer, p part) bool {
	from, ok := p.reader()
	if !ok {
		return false
	}
	_, err := io.Copy(to, from)
	return err == nil
}

func writePart(w *bufio.Writer, kind byte, h hash.Hash) bool {
	_ = w.WriteByte(kind)
	_, err := w.Write(h.Sum(nil))
	return err == nil
}

// writePayload unpacks what is gzip from begin to end; what only begins like it
// counts as it is.
func writePayload(w *bufio.Writer, p part, budget *int64) bool {
	from, ok := p.reader()
	if !ok {
		return false
	}
	if z, err := gzip.NewReader(from); err == nil {
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(z, *budget+1))
		if *budget -= n; *budget < 0 {
			return false
		}
		if err == nil {
			return writePart(w, partUnpacked, h)
		}
	}
	h := sha256.New()
	return copyPart(h, p) && writePart(w, partAsIs, h)
}
