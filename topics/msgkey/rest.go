package msgkey

// maxIdempotencyKey is the most octets of an Idempotency-Key.
const maxIdempotencyKey = 255

// fromREST is the extractor "rest": rest:{client}/{Idempotency-Key} of the
// record's headers (draft-ietf-httpapi-idempotency-key-header-07). The draft
// leaves the scope of a key to the server; two clients that count from 1 must
// not meet, so the client is a part of it. A record with either header is REST.
func fromREST(m *Message, _ payload, _ *settings) (Found, Code, bool) {
	client, hasClient := m.header(HeaderClientID)
	value, hasKey := m.header(HeaderIdempotencyKey)
	key, code := idempotencyKey(trimBlanks(value))
	if code != "" {
		return Found{}, code, hasClient || hasKey
	}
	if client = trimBlanks(client); len(client) == 0 {
		return Found{}, RESTMissingClient, true
	}
	return newKey("rest", Field{string(client)}, Field{string(key)}), "", true
}

// idempotencyKey reads a Structured Field String, or the bare value that most
// clients send.
func idempotencyKey(value []byte) (key []byte, code Code) {
	if len(value) > 0 && value[0] == '"' {
		var ok bool
		if value, ok = sfString(value); !ok {
			return nil, RESTBadSFString
		}
	} else if !visible(value, '!') {
		return nil, RESTBadSFString
	}
	switch {
	case len(trimBlanks(value)) == 0:
		return nil, RESTMissingKey
	case len(value) > maxIdempotencyKey:
		return nil, RESTKeyTooLong
	}
	return value, ""
}

// sfString reads a String item (RFC 9651 §4.2.5) that begins at its quote, and
// drops its parameters.
func sfString(value []byte) ([]byte, bool) {
	out := make([]byte, 0, min(len(value), maxIdempotencyKey+1))
	for i := 1; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '"':
			behind := value[i+1:]
			return out, len(behind) == 0 || trimBlanks(behind)[0] == ';'
		case c == '\\':
			if i++; i == len(value) || value[i] != '"' && value[i] != '\\' {
				return nil, false
			}
		case c < ' ' || c > '~':
			return nil, false
		}
		if len(out) <= maxIdempotencyKey { // the rest would only be thrown away
			out = append(out, value[i])
		}
	}
	return nil, false
}

// visible reports whether all octets are ASCII from least to "~".
func visible(value []byte, least byte) bool {
	for _, c := range value {
		if c < least || c > '~' {
			return false
		}
	}
	return true
}
