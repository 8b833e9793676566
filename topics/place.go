package topics

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dedupledger/ledger"
)

// Place names a record for people and headers: topic/partition/offset. The
// topic is a name, or the text of its id where the name is not known any more
// or would not fit into the headers. No topic name holds a slash.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// String is topic/partition/offset.
func (p Place) String() string { return string(p.append(nil)) }

func (p Place) append(b []byte) []byte {
	b = append(b, p.Topic...)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(p.Partition), 10)
	b = append(b, '/')
	return strconv.AppendInt(b, p.Offset, 10)
}

// In reports whether the place lies in the topic of that name or id.
func (p Place) In(name string, id ledger.TopicID) bool {
	return p.Topic == name || p.Topic == id.String()
}

// ParsePlace reads what String writes and nothing else, so that one record has
// one spelling.
func ParsePlace(text string) (Place, error) {
	topic, rest, ok1 := strings.Cut(text, "/")
	partition, offset, ok2 := strings.Cut(rest, "/")
	p, ok3 := parseNumber(partition, math.MaxInt32)
	o, ok4 := parseNumber(offset, math.MaxInt64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !validName(topic) {
		return Place{}, fmt.Errorf("place %.300q: not topic/partition/offset", text)
	}
	return Place{Topic: topic, Partition: int32(p), Offset: o}, nil //nolint:gosec // bounded above
}

// parseNumber reads a decimal number from 0 to limit without sign or leading
// zeros.
func parseNumber(text string, limit int64) (int64, bool) {
	if text == "" || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= limit
}

// validName reports whether Kafka takes the text as a topic's name:
// [a-zA-Z0-9._-], 1 to 249 characters, not "." or "..".
func validName(name string) bool {
	return name != "" && len(name) <= maxTopicName && name != "." && name != ".." && nameText(name)
}

// nameText reports whether a text is of Kafka's alphabet for topic names, which
// is that of scopes.
func nameText(text string) bool {
	for i := range len(text) {
		if !scopeByte(text[i]) {
			return false
		}
	}
	return true
}
