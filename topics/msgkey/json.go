package msgkey

// fromJSON is the extractor "json": json:{value}/{value}… of the members that
// JSONPointers name. Numbers keep their digits as they are written: as floating
// point, 9007199254740993 and 9007199254740992 would be one key.
func fromJSON(_ *Message, p payload, with *settings) (Found, Code, bool) {
	if len(with.pointers) == 0 {
		return Found{}, KeyNotFound, false // auto, without pointers
	}
	doc, ok := readJSON(p)
	if !ok {
		return Found{}, JSONNotJSON, true
	}
	fields := make([]Field, 0, len(with.pointers))
	for _, pointer := range with.pointers {
		value, code := resolve(doc, pointer)
		if code == "" {
			value, code = scalar(value)
		}
		if code != "" {
			return Found{}, code, true
		}
		fields = append(fields, Field{string(value)})
	}
	return newKey("json", fields...), "", true
}

// scalar is the text of a string, a number or a boolean.
func scalar(value []byte) ([]byte, Code) {
	if len(value) > maxValue { // so long a text identifies nothing
		return nil, JSONNotScalar
	}
	switch value[0] {
	case '{', '[', 'n':
		return nil, JSONNotScalar
	case '"':
		text, ok := unquote(value)
		switch {
		case !ok:
			return nil, JSONNotJSON
		case text == "":
			return nil, JSONEmptyValue
		}
		return []byte(text), ""
	}
	return value, ""
}
