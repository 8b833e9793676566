package msgkey

import "bytes"

// HeaderName is the record header of the explicit key.
const HeaderName = "dedup-key"

// MaxExplicit is the most octets an explicit key may have, blanks included.
const MaxExplicit = 4096

// Explicit is the key of a value that the sender named: in the header
// dedup-key, or in an API call. Outer SP, TAB, CR and LF do not count. A
// canonical value is taken as it is; anything else is opaque and becomes one
// encoded part under the scheme hdr. The code is HeaderEmptyKey,
// HeaderKeyTooLong or "".
func Explicit(value []byte) (string, Code) {
	full, code := explicit(value)
	return limit(full), code
}

func explicit(value []byte) (string, Code) {
	if len(value) > MaxExplicit {
		return "", HeaderKeyTooLong
	}
	value = bytes.Trim(value, " \t\r\n")
	if len(value) == 0 {
		return "", HeaderEmptyKey
	}
	if Canonical(value) {
		return string(value), ""
	}
	var stack [256]byte
	return string(appendPart(append(stack[:0], "hdr:"...), value)), ""
}

// fromHeader is the extractor "header".
func fromHeader(m *Message, _ payload, _ *settings) (Found, Code, bool) {
	value, ok := m.header(HeaderName)
	if !ok {
		return Found{}, HeaderMissingKey, false
	}
	full, code := explicit(value)
	if code != "" {
		return Found{}, code, true
	}
	return newFound(full), "", true
}
