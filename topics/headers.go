package topics

import (
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Header names: the table of README.md. They never change once released.
// All values are text in UTF-8.
const (
	HeaderKey         = "dedup-key"     // in: explicit key; out: the final key
	HeaderScope       = "dedup-scope"   // in: where scope_from says so; out: tenant:flow
	HeaderAttempt     = "dedup-attempt" // in only: client/attempt of an API registration
	HeaderAction      = "dedup-action"  // on the operator topic only
	HeaderID          = "dedup-id"      // UUIDv5 of the accepted record: the reader's idempotency key
	HeaderStatus      = "dedup-status"
	HeaderOrigin      = "dedup-origin" // topic/partition/offset of this raw record
	HeaderFirstSeenAt = "dedup-first-seen-at"
	HeaderExpiresAt   = "dedup-expires-at"
	HeaderFirstOrigin = "dedup-first-origin" // of the accepted record, on duplicates
	HeaderFirstID     = "dedup-first-id"
	HeaderFirstSHA256 = "dedup-first-payload-sha256"
	HeaderSHA256      = "dedup-payload-sha256" // of the raw bytes, lower-case hex
	HeaderRetryCount  = "dedup-retry-count"
	HeaderReason      = "dedup-reason"        // a closed code, never a message
	HeaderMatched     = "dedup-matched"       // the key by which it is a repeat, where an alias had part in it
	HeaderAliases     = "dedup-aliases"       // the record's keys beside HeaderKey, a blank between two
	HeaderPayload     = "dedup-payload"       // PayloadReference, PayloadOmitted: the value is not the payload
	HeaderBytes       = "dedup-payload-bytes" // beside HeaderPayload: the size of the raw value, decimal
	HeaderReplayID    = "dedup-replay-id"
)

// Values of HeaderPayload.
const (
	PayloadReference = "reference" // dead letter that could not carry the value
	PayloadOmitted   = "omitted"   // repeat above duplicates.payload_copies
)

// StatusReleased is the status of a held copy that an operator let through.
// The others are those of ledger.Verdict.
const StatusReleased = "RELEASED"

const ourPrefix = "dedup-"

// TimeLayout is how headers spell a time: RFC 3339, UTC, with microseconds.
// Learning makes rows from these headers (ARCHITECTURE §4), and a row's times have
// PostgreSQL's microseconds; with milliseconds a learned row would differ from
// the one that was lost, and its window would end earlier than promised.
const TimeLayout = "2006-01-02T15:04:05.000000Z07:00"

// Ours reports whether a header belongs to the filter: its name begins with
// "dedup-", in any case. Kafka compares names byte by byte, but gateways that
// copy HTTP headers write Dedup-Key, and readers whose header maps ignore case
// would take a forged Dedup-Id for ours. So incoming ones are read and dropped
// without regard to case; what the filter writes is always lower case.
func Ours(name string) bool {
	return len(name) >= len(ourPrefix) && strings.EqualFold(name[:len(ourPrefix)], ourPrefix)
}

// Last is the value of the last header of that name, in any case: of repeats
// the last counts, as Java's lastHeader has it. A header with a nil value is
// there, with a nil value.
func Last(headers []kgo.RecordHeader, name string) (value []byte, ok bool) {
	return Nth(headers, name, 0)
}

// Nth is the value of a header of that name, counted from the last, which is 0.
func Nth(headers []kgo.RecordHeader, name string, back int) (value []byte, ok bool) {
	for _, h := range slices.Backward(headers) {
		if len(h.Key) != len(name) || !strings.EqualFold(h.Key, name) {
			continue
		}
		if back == 0 {
			return h.Value, true
		}
		back--
	}
	return nil, false
}

// countForeign is the number of headers that are passed on.
func countForeign(headers []kgo.RecordHeader) int {
	n := 0
	for i := range headers {
		if !Ours(headers[i].Key) {
			n++
		}
	}
	return n
}

// appendForeign passes foreign headers on: order, repeats, case, empty names
// and nil values as they came. The values are shared, not copied.
func appendForeign(dst, headers []kgo.RecordHeader) []kgo.RecordHeader {
	for i := range headers {
		if !Ours(headers[i].Key) {
			dst = append(dst, headers[i])
		}
	}
	return dst
}

// appendTime writes a time in TimeLayout. Every output has two, and the general
// formatter reads the layout anew for each.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, TimeLayout)
	}
	hour, minute, second := t.Clock()
	b = append(appendDigits(b, year, 4), '-')
	b = append(appendDigits(b, int(month), 2), '-')
	b = append(appendDigits(b, day, 2), 'T')
	b = append(appendDigits(b, hour, 2), ':')
	b = append(appendDigits(b, minute, 2), ':')
	b = append(appendDigits(b, second, 2), '.')
	return append(appendDigits(b, t.Nanosecond()/1000, 6), 'Z')
}

// appendDigits writes the last so many decimal digits of n, with leading zeros.
func appendDigits(b []byte, n, digits int) []byte {
	b = append(b, "000000"[:digits]...)
	for i := len(b) - 1; n > 0 && digits > 0; i, digits = i-1, digits-1 {
		b[i] = '0' + byte(n%10)
		n /= 10
	}
	return b
}
