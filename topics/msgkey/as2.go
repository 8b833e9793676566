package msgkey

import "bytes"

// maxMessageID is the most octets a Message-ID has: those of a line (RFC 5322
// §2.1.1).
const maxMessageID = 998

// maxRepeats is how many headers of one name are compared; more are not the
// work of a gateway.
const maxRepeats = 64

// fromAS2 is the extractor "as2": as2:{AS2-From}/{Message-ID} of the record's
// headers. RFC 4130 §9.3: "Detection of duplicates by Message-Id or by business
// transaction identifiers is recommended". A record with either header is AS2.
func fromAS2(m *Message, _ payload, _ *settings) (Found, Code, bool) {
	name, isAS2 := m.header(HeaderAS2From)
	id, code := as2MessageID(m)
	if code != "" {
		return Found{}, code, isAS2 || code != AS2MissingMessageID
	}
	from := as2Name(name)
	if len(trimBlanks(from)) == 0 {
		return Found{}, AS2MissingFrom, true
	}
	return newKey("as2", Field{string(from)}, Field{string(id)}), "", true
}

func as2MessageID(m *Message) ([]byte, Code) {
	value, ok := m.header(HeaderMessageID)
	if !ok {
		return nil, AS2MissingMessageID
	}
	id := as2ID(value)
	switch {
	case len(id) == 0:
		return nil, AS2EmptyMessageID
	case len(id) > maxMessageID || !printable(id):
		return nil, AS2BadMessageID
	}
	for back := 1; ; back++ {
		value, ok = m.headerBack(HeaderMessageID, back)
		if !ok {
			return id, ""
		}
		if back == maxRepeats || !bytes.Equal(as2ID(value), id) {
			return nil, AS2MultipleMessageID
		}
	}
}

// as2ID is a Message-ID as it is compared. The angle brackets are no part of
// it: some senders leave them out. Case counts.
func as2ID(value []byte) []byte { return withoutBrackets(headerText(value)) }

// withoutBrackets removes one pair of angle brackets.
func withoutBrackets(id []byte) []byte {
	if len(id) >= 2 && id[0] == '<' && id[len(id)-1] == '>' {
		return id[1 : len(id)-1]
	}
	return id
}

// printable reports whether there are neither blanks nor controls; octets above
// ASCII are let pass.
func printable(id []byte) bool {
	for _, c := range id {
		if c <= ' ' || c == 0x7F {
			return false
		}
	}
	return true
}

// as2Name reads AS2-From (RFC 4130 §6.2): a name, or one in quotes whose quotes
// and backslashes are escaped.
func as2Name(value []byte) []byte {
	name := headerText(value)
	if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
		return name
	}
	name = name[1 : len(name)-1]
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] == '\\' && i+1 < len(name) {
			i++
		}
		out = append(out, name[i])
	}
	return out
}
