package topics

import (
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

const (
	timeLength     = len("2006-01-02T15:04:05.000000Z")
	uuidLength     = 36
	hashLength     = 64
	numberLength   = 19                        // of an int64
	sizeLength     = 10                        // of an int32
	placeLength    = 1 + 10 + 1 + numberLength // behind the topic
	statusLength   = len(StatusReleased)
	headerOverhead = 10 // two varint lengths of a header on the wire, at most

	// valueFixed is what our values of one record need at most, beside key,
	// scope, reason and topic names.
	valueFixed = statusLength + 2*placeLength + 2*timeLength + uuidLength + 2*hashLength + numberLength + len(PayloadReference) + sizeLength

	// cleanFixed is valueFixed of a clean record, beside its own topic's name too.
	cleanFixed = statusLength + placeLength + 2*timeLength + uuidLength + hashLength

	// cleanNames are the names of our headers of a clean record, beside that of its
	// aliases.
	cleanNames = len(HeaderKey) + len(HeaderScope) + len(HeaderID) + len(HeaderStatus) + len(HeaderOrigin) +
		len(HeaderFirstSeenAt) + len(HeaderExpiresAt) + len(HeaderSHA256) + len(HeaderReason)

	// duplicateFixed is what the headers of a duplicate need at most, names
	// included, beside key, scope, reason and topic names.
	duplicateFixed = valueFixed + len(HeaderKey) + len(HeaderScope) + len(HeaderStatus) + len(HeaderOrigin) +
		len(HeaderFirstSeenAt) + len(HeaderExpiresAt) + len(HeaderFirstOrigin) + len(HeaderFirstID) +
		len(HeaderFirstSHA256) + len(HeaderSHA256) + len(HeaderRetryCount) + len(HeaderReason) + len(HeaderPayload) + len(HeaderBytes)
)

// widest is valueFixed with two topics' names or ids.
func widest(in *kgo.Record) int { return valueFixed + 2*max(len(in.Topic), uuidLength) }

// headerWriter puts all our values of a record into one buffer and all headers
// into one slice: two allocations, whatever the number of headers. Values are
// cut out with their capacity, so that appending to one cannot reach the next.
type headerWriter struct {
	headers []kgo.RecordHeader
	buf     []byte
}

// newHeaderWriter starts with the foreign headers and makes room for ours: so
// many, with fixed bytes beside key, scope and reason.
func newHeaderWriter(in *kgo.Record, f *Facts, ours, fixed int) headerWriter {
	size := fixed + len(f.Key) + len(f.Scope) + len(f.Reason) + aliasesLength(f) + matchedLength(f)
	w := headerWriter{
		headers: make([]kgo.RecordHeader, 0, countForeign(in.Headers)+ours),
		buf:     make([]byte, 0, size),
	}
	w.headers = appendForeign(w.headers, in.Headers)
	return w
}

// aliasesLength is what the header of the aliases takes, name included.
func aliasesLength(f *Facts) int {
	if len(f.Aliases) == 0 {
		return 0
	}
	n := len(HeaderAliases) + len(f.Aliases) - 1
	for i := range f.Aliases {
		n += len(f.Aliases[i].Key)
	}
	return n
}

func matchedLength(f *Facts) int {
	if f.Matched == "" {
		return 0
	}
	return len(HeaderMatched) + len(f.Matched)
}

// aliases writes the keys with a blank between two: no key has one.
func (w *headerWriter) aliases(keys []ledger.Key) {
	if len(keys) == 0 {
		return
	}
	b := w.buf
	for i := range keys {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, keys[i].Key...)
	}
	w.add(HeaderAliases, len(w.buf), b)
}

// add takes the buffer's new end, from byte start on, as the value.
func (w *headerWriter) add(name string, start int, buf []byte) {
	w.buf = buf
	w.headers = append(w.headers, kgo.RecordHeader{Key: name, Value: buf[start:len(buf):len(buf)]})
}

func (w *headerWriter) text(name, value string) {
	w.add(name, len(w.buf), append(w.buf, value...))
}

// optional leaves an empty value out.
func (w *headerWriter) optional(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

func (w *headerWriter) number(name string, n int64) {
	w.add(name, len(w.buf), strconv.AppendInt(w.buf, n, 10))
}

// without says why there is no value here, and how long it was: the bytes of
// dedup_hour are learned from it.
func (w *headerWriter) without(why string, bytes int) {
	w.text(HeaderPayload, why)
	w.number(HeaderBytes, int64(bytes))
}

func (w *headerWriter) hash(name string, sum *[32]byte) {
	w.add(name, len(w.buf), hex.AppendEncode(w.buf, sum[:]))
}

// uuid writes the form of RFC 9562 §4 in place; id.String() would allocate.
func (w *headerWriter) uuid(name string, id uuid.UUID) {
	b := hex.AppendEncode(w.buf, id[:4])
	for _, part := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		b = hex.AppendEncode(append(b, '-'), part)
	}
	w.add(name, len(w.buf), b)
}

func (w *headerWriter) place(name, topic string, o ledger.Origin) {
	w.add(name, len(w.buf), Place{topic, o.Partition, o.Offset}.append(w.buf))
}

// window tells when the row was made and when its window ends.
func (w *headerWriter) window(e *ledger.Entry) {
	w.add(HeaderFirstSeenAt, len(w.buf), appendTime(w.buf, e.FirstSeenAt))
	w.add(HeaderExpiresAt, len(w.buf), appendTime(w.buf, e.ExpiresAt))
}
