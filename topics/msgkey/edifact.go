package msgkey

// fromEDIFACT is the extractor "edifact":
// edifact:{S002}/{S003}/{0020}, and /T for a test. ISO 9735 (UNB, note): "The
// combination of the values carried in data elements S002, S003 and 0020 shall
// be used to identify uniquely the interchange".
func fromEDIFACT(_ *Message, p payload, with *settings) (Found, Code, bool) {
	f, code := edifact(p.data, with)
	return f, code, true
}

func edifact(data []byte, with *settings) (Found, Code) {
	s, data, code := readUNA(data)
	if code != "" {
		return Found{}, code
	}
	if data, code = s.openUNB(data); code != "" {
		return Found{}, code
	}
	var key [256]byte
	var date [32]byte
	u := unb{key: append(key[:0], "edifact"...), date: date[:0]}
	if u, data, code = u.read(&s, data); code != "" {
		return Found{}, code
	}
	// Strict: a truncated file must not occupy the key of the complete one.
	if code = s.checkTrailer(data, u.key[u.field:], with.Lenient); code != "" {
		return Found{}, code
	}
	if with.EDIFACTMessages {
		u.key = s.appendMessages(u.key, data)
	}
	return newInterchange(u.key, u.suffix(), u.date), ""
}

// openUNB consumes the tag and the element separator behind it.
func (s *service) openUNB(data []byte) ([]byte, Code) {
	tag, rest := s.tag(data)
	switch string(tag[:]) {
	case "UNB":
	case "UIB":
		return nil, EDIFACTInteractive
	default:
		return nil, EDIFACTNoUNB
	}
	for len(rest) > 0 && s.dropped(rest[0]) {
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0:
		return nil, EDIFACTUNBUnterminated
	case rest[0] == levelBElement && !s.advised:
		*s = levelB()
	case rest[0] != s.element:
		return nil, EDIFACTNoUNB
	}
	return rest[1:], ""
}
