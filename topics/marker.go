package topics

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"dedupledger/ledger"
)

const markerPrefix = "dd1:"

// Marker is the metadata of every offset the filter commits (ARCHITECTURE §4):
// dd1:<ledger id>:<topic id>:<seq>:<offset>. It is set in the commit itself,
// so it is atomic with the transaction; a reset by any tool wipes it or leaves
// it beside another offset.
type Marker struct {
	Ledger uuid.UUID
	Topic  ledger.TopicID
	Seq    int64
	Offset int64
}

// String is the metadata: 118 characters at most, Kafka's default limit is 4096.
func (m Marker) String() string {
	b := make([]byte, 0, 128)
	b = append(b, markerPrefix...)
	b = append(b, m.Ledger.String()...)
	b = append(b, ':')
	b = append(b, m.Topic.String()...)
	b = append(b, ':')
	b = strconv.AppendInt(b, m.Seq, 10)
	b = append(b, ':')
	b = strconv.AppendInt(b, m.Offset, 10)
	return string(b)
}

// Names reports whether a group offset is ours: the marker names this ledger,
// this incarnation of the topic and this very offset. Only then it is exact.
func (m Marker) Names(ledgerID uuid.UUID, topic ledger.TopicID, offset int64) bool {
	return m.Ledger == ledgerID && m.Topic == topic && m.Offset == offset
}

// Exact reads a group offset as the broker tells it: whether it is exact, set by
// the filter for this ledger and this incarnation of the topic, and with which
// seq. One without a leader epoch is not.
func Exact(ledgerID uuid.UUID, topic ledger.TopicID, offset int64, epoch int32, metadata string) (seq int64, exact bool) {
	m, err := ParseMarker(metadata)
	if err != nil || epoch < 0 || !m.Names(ledgerID, topic, offset) {
		return 0, false
	}
	return m.Seq, true
}

// Marked reports whether a commit's metadata carries a marker of any ledger,
// readable or not. A group offset that is not ours and marked was moved by a
// tool that kept the metadata, or belongs to another ledger or topic.
func Marked(metadata string) bool { return strings.HasPrefix(metadata, markerPrefix) }

// ParseMarker reads what String writes, and nothing else.
func ParseMarker(metadata string) (Marker, error) {
	bad := func(part string) (Marker, error) {
		return Marker{}, fmt.Errorf("commit marker %.150q: bad %s", metadata, part)
	}
	fields := strings.Split(metadata, ":")
	if len(fields) != 5 || fields[0]+":" != markerPrefix {
		return bad("form")
	}
	ledgerID, ok := parseUUID(fields[1])
	if !ok {
		return bad("ledger id")
	}
	topic, ok := parseUUID(fields[2])
	if !ok {
		return bad("topic id")
	}
	seq, ok := parseNumber(fields[3], math.MaxInt64)
	if !ok {
		return bad("seq")
	}
	offset, ok := parseNumber(fields[4], math.MaxInt64)
	if !ok {
		return bad("offset")
	}
	return Marker{Ledger: ledgerID, Topic: ledger.TopicID(topic), Seq: seq, Offset: offset}, nil
}

// parseUUID takes the one spelling the filter writes: 36 characters, lower
// case. uuid.Parse alone would take URNs, braces and upper case too.
func parseUUID(text string) (uuid.UUID, bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && id.String() == text
}
