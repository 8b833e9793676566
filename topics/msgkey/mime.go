package msgkey

import (
	"bytes"
	"mime"
)

// maxBoundary is the most octets of a boundary. RFC 2046 §5.1.1 has 70; senders
// of more are let pass, within reason.
const maxBoundary = 200

// multipart is a MIME entity of several parts (RFC 2046 §5.1).
type multipart struct {
	delimiter []byte // "--" and the boundary
	start     []byte // Content-ID of the root part (RFC 2387 §3.2), or none
	body      []byte // what is not read yet
}

// part is one of them. The slices point into the data.
type part struct{ header, body []byte }

// entity is a payload as MIME sees it.
type entity struct {
	multipart

	parts bool // it has parts; else single is what it consists of
	mime  bool // it has parts, or header lines before single
	lone  part // without parts
}

// readEntity finds the parts of a payload: by the record's Content-Type, else by
// header lines in the payload, else by a first line that is a delimiter. ok is
// false if it says that it has parts and does not say how they are told apart.
func readEntity(contentType []byte, p payload) (e entity, ok bool) {
	if isMultipart(contentType) {
		return entityOf(contentType, p.data)
	}
	if p.format != FormatMIME || p.utf16 {
		return entity{lone: part{body: p.data}}, true
	}
	if bytes.HasPrefix(p.data, []byte("--")) {
		line, _, _ := bytes.Cut(p.data[:min(len(p.data), maxBoundary+len("--\r\n"))], []byte("\n"))
		return withBoundary(trimBlanks(line)[2:], nil, p.data)
	}
	header, body, found := splitHeader(p.data)
	if !found {
		return entity{}, false
	}
	if contentType = headerField(header, HeaderContentType); isMultipart(contentType) {
		return entityOf(contentType, body)
	}
	return entity{mime: true, lone: part{header: header, body: body}}, true
}

func entityOf(contentType, body []byte) (entity, bool) {
	if len(contentType) > maxMIMEHeader {
		return entity{}, false
	}
	contentType = headerText(contentType)
	return withBoundary(parameter(contentType, "boundary"), parameter(contentType, "start"), body)
}

func withBoundary(boundary, start, body []byte) (entity, bool) {
	if len(boundary) == 0 || len(boundary) > maxBoundary {
		return entity{}, false
	}
	m := multipart{delimiter: append([]byte("--"), boundary...), start: withoutBrackets(start), body: body}
	if _, closed, ok := m.cut(); !ok || closed { // what stands before the first part
		return entity{}, false
	}
	return entity{multipart: m, parts: true, mime: true}, true
}

// next reads the part behind a delimiter. closed says that it is the last; ok is
// false if no delimiter follows it, or its header does not end in 64 KiB.
func (m *multipart) next() (p part, closed, ok bool) {
	data, closed, ok := m.cut()
	if !ok {
		return part{}, false, false
	}
	if p.header, p.body, ok = splitHeader(data); !ok && len(data) <= maxMIMEHeader {
		return part{header: data}, closed, true // nothing but a header (RFC 2046 §5.1.1, body-part)
	}
	return p, closed, ok
}

// cut takes what stands before the next delimiter. The line break before a
// delimiter belongs to it.
func (m *multipart) cut() (before []byte, closed, ok bool) {
	for from := 0; ; {
		i := bytes.Index(m.body[from:], m.delimiter)
		if i < 0 {
			return nil, false, false
		}
		at := from + i
		from = at + len(m.delimiter)
		if at > 0 && m.body[at-1] != '\n' {
			continue
		}
		length, closed := delimiterEnd(m.body[from:])
		if length < 0 {
			continue
		}
		before, m.body = m.body[:at], m.body[from+length:]
		before = bytes.TrimSuffix(before, []byte("\n"))
		return bytes.TrimSuffix(before, []byte("\r")), closed, true
	}
}

// delimiterEnd reads the rest of a delimiter's line: "--" closes, blanks may
// follow. length is negative if more follows: then it is no delimiter.
func delimiterEnd(rest []byte) (length int, closed bool) {
	closed = bytes.HasPrefix(rest, []byte("--"))
	if closed {
		length = 2
	}
	for length < len(rest) {
		switch rest[length] {
		case ' ', '\t', '\r':
			length++
		case '\n':
			return length + 1, closed
		default:
			return -1, false
		}
	}
	return length, closed
}

// splitHeader splits at the first blank line. ok is false if there is none in
// the first 64 KiB.
func splitHeader(data []byte) (header, body []byte, ok bool) {
	for at := 0; at < min(len(data), maxMIMEHeader); {
		end := bytes.IndexByte(data[at:min(len(data), at+maxMIMEHeader)], '\n')
		if end < 0 {
			break
		}
		if line := data[at : at+end]; len(line) == 0 || len(line) == 1 && line[0] == '\r' {
			return data[:at], data[at+end+1:], true
		}
		at += end + 1
	}
	return nil, nil, false
}

// headerField is the unfolded value of the first field of a name, in lower
// case, or nil.
func headerField(header []byte, name string) []byte {
	for len(header) > 0 {
		end := fieldEnd(header)
		field := header[:end]
		header = header[end:]
		if at := bytes.IndexByte(field, ':'); at >= 0 && string(bytes.ToLower(trimBlanks(field[:at]))) == name {
			return headerText(field[at+1:])
		}
	}
	return nil
}

// fieldEnd is the length of the field that header begins with: lines that begin
// with a blank continue the one before.
func fieldEnd(header []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(header[at:], '\n')
		if i < 0 {
			return len(header)
		}
		at += i + 1
		if at == len(header) || header[at] != ' ' && header[at] != '\t' {
			return at
		}
	}
}

// mediaType is the type in lower case, without parameters.
func mediaType(contentType []byte) string {
	name, _, _ := bytes.Cut(contentType[:min(len(contentType), maxMIMEHeader)], []byte(";"))
	return string(bytes.ToLower(trimBlanks(name)))
}

func isMultipart(contentType []byte) bool {
	name := trimBlanks(contentType)
	return len(name) > len("multipart/") && bytes.EqualFold(name[:len("multipart/")], []byte("multipart/"))
}

// parameter reads a parameter of a Content-Type. It takes what senders write
// and mime.ParseMediaType refuses: an unquoted boundary=----=_Part_1, and an
// unquoted type=application/soap+xml beside it.
func parameter(contentType []byte, name string) []byte {
	_, rest, more := bytes.Cut(contentType, []byte(";"))
	for more {
		var key, value []byte
		key, value, rest, more = cutParameter(rest)
		if string(bytes.ToLower(key)) == name {
			return value
		}
	}
	// Continued or encoded (RFC 2231): boundary*0=, boundary*=.
	_, all, err := mime.ParseMediaType(string(contentType))
	if err != nil {
		return nil
	}
	return []byte(all[name])
}

func cutParameter(text []byte) (name, value, rest []byte, more bool) {
	end := bytes.IndexAny(text, "=;")
	if end < 0 {
		return nil, nil, nil, false
	}
	name = trimBlanks(text[:end])
	if text[end] == ';' {
		return name, nil, text[end+1:], true
	}
	text = bytes.TrimLeft(text[end+1:], outerBlanks)
	if len(text) == 0 || text[0] != '"' {
		value, rest, more = bytes.Cut(text, []byte(";"))
		return name, trimBlanks(value), rest, more
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
		case c == '"':
			_, rest, more = bytes.Cut(text[i+1:], []byte(";"))
			return name, value, rest, more
		}
		value = append(value, text[i])
	}
	return name, value, nil, false // not closed
}
