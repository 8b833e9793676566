package msgkey

import "strings"

const (
	ceMediaType = "application/cloudevents"
	ceJSON      = "+json"
	ceBatch     = "-batch"
)

// fromCE is the extractor "ce": ce:{source}/{id} of a CloudEvent. CloudEvents
// 1.0.2, id: "Consumers MAY assume that Events with identical source and id are
// duplicates". The content-type says where they stand (Kafka binding §3): in
// the value, or in the headers ce_source and ce_id; there a null value is an
// event without data.
func fromCE(m *Message, p payload, _ *settings) (Found, Code, bool) {
	contentType, _ := m.header(HeaderContentType)
	kind, structured := strings.CutPrefix(mediaType(contentType), ceMediaType)
	if !structured || len(kind) > 0 && kind[0] != '+' && kind[0] != '-' {
		return binaryEvent(m)
	}
	switch {
	case strings.HasPrefix(kind, ceBatch):
		return Found{}, CEBatchUnsupported, true
	case kind != ceJSON:
		return Found{}, CEUnsupportedFormat, true
	}
	f, code := structuredEvent(p)
	return f, code, true
}

func binaryEvent(m *Message) (Found, Code, bool) {
	version, hasVersion := m.header(HeaderCEVersion)
	id, hasID := m.header(HeaderCEID)
	source, hasSource := m.header(HeaderCESource)
	f, code := event(string(version), string(id), string(source))
	return f, code, hasVersion || hasID || hasSource
}

func structuredEvent(p payload) (Found, Code) {
	doc, ok := readJSON(p)
	if !ok || doc[0] != '{' {
		return Found{}, CENotJSON
	}
	var attributes [3]string
	for i, name := range [...]string{"specversion", "id", "source"} {
		value, n := member(doc, name)
		if n > 1 { // parsers differ in which one they take
			return Found{}, CENotJSON
		}
		if n == 0 || value[0] != '"' {
			continue
		}
		if attributes[i], ok = unquote(value); !ok {
			return Found{}, CENotJSON
		}
	}
	return event(attributes[0], attributes[1], attributes[2])
}

func event(version, id, source string) (Found, Code) {
	switch {
	case version == "":
		return Found{}, CEMissingSpecversion
	case id == "":
		return Found{}, CEMissingID
	case source == "":
		return Found{}, CEMissingSource
	}
	return newKey("ce", Field{source}, Field{id}), ""
}
