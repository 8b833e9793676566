package topics

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

var (
	// ErrForeignRecord says that a record in an output topic was not written by
	// the filter: it has neither dedup-status nor dedup-origin.
	ErrForeignRecord = errors.New("not an output of the filter")
	// ErrMalformed says that a header of the filter is missing or cannot be read:
	// somebody else wrote the record, or changed it.
	ErrMalformed = errors.New("header of an output is malformed")
)

// Output is what a committed output record tells of the raw record it was made
// from. Learning makes ledger rows of it (ARCHITECTURE §4).
type Output struct {
	Verdict  ledger.Verdict // New too for a released copy
	Released bool
	Origin   Place     // of the raw record; its topic may be an id's text, see Place.In
	ID       uuid.UUID // dedup-id: of all that is in clean, zero elsewhere
	// Scope is tenant:flow as the record had it, zero where it could not be
	// read; the ledger scope is a matter of the rules.
	Scope         Scope
	Key           string   // "" for an INVALID without one
	Aliases       []string // keys beside Key; all of a NEW, perhaps none of the others
	Matched       string   // the key by which it is a repeat, where an alias had part in it
	Reason        string
	PayloadSHA256 [32]byte
	FirstSeenAt   time.Time // of the row, UTC; zero for INVALID
	ExpiresAt     time.Time
	SourceService string
	Bytes         int64  // of the raw value; 0 where it is not here and nothing tells
	Reference     bool   // the value is not the payload
	ReplayID      string // a copy by command: not to be learned
}

// ReadOutput reads our headers of an output record back. Of repeats the last
// counts, which is ours. Headers may be forged: whatever they hold, what comes
// back is within the bounds of the tables, or the error wraps ErrForeignRecord
// or ErrMalformed. Values are never in the error's text.
func ReadOutput(rec *kgo.Record) (Output, error) {
	_, hasStatus := Last(rec.Headers, HeaderStatus)
	_, hasOrigin := Last(rec.Headers, HeaderOrigin)
	if !hasStatus && !hasOrigin {
		return Output{}, ErrForeignRecord
	}
	r := headerReader{headers: rec.Headers}
	o := Output{
		Origin:        r.place(HeaderOrigin),
		Reason:        r.reason(),
		PayloadSHA256: r.hash(HeaderSHA256),
		SourceService: SourceService(rec.Headers),
		Bytes:         int64(len(rec.Value)),
	}
	o.Verdict, o.Released = r.status()
	o.ReplayID = cleanText(r.last(HeaderReplayID), maxKey)
	if o.Reference = r.last(HeaderPayload) != ""; o.Reference {
		o.Bytes = r.size()
	}
	if o.Verdict == ledger.Invalid {
		r.readInvalid(&o)
	} else {
		r.readJudged(&o)
	}
	if r.err != nil {
		return Output{}, r.err
	}
	return o, nil
}

// Epoch finds the leader epoch of an accepted record's origin, which has no
// header of its own: the dedup-id was made of it (ARCHITECTURE §3), so it is the one
// epoch in [from, to] that gives this id. False where the record has no id, or
// it was made by another topic id or epoch. Partition and offset are the origin's.
func (o *Output) Epoch(topic ledger.TopicID, from, to int32) (int32, bool) {
	if o.ID == uuid.Nil {
		return 0, false
	}
	// From the youngest: learning looks at the newest part of a topic. In int64,
	// as to may be the largest int32 and from the smallest.
	for e := int64(to); e >= int64(from); e-- {
		origin := ledger.Origin{Topic: topic, Partition: o.Origin.Partition, Epoch: int32(e), Offset: o.Origin.Offset} //nolint:gosec // between two int32
		if origin.ID() == o.ID {
			return origin.Epoch, true
		}
	}
	return 0, false
}

// headerReader keeps the first fault, so that the reading above stays a list.
type headerReader struct {
	headers []kgo.RecordHeader
	err     error
}

func (r *headerReader) fail(name, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s is not %s: %w", name, want, ErrMalformed)
	}
}

func (r *headerReader) last(name string) string {
	value, _ := Last(r.headers, name)
	return string(value)
}

// readJudged reads what a NEW, SEEN or DRIFT has; a NEW also its id.
func (r *headerReader) readJudged(o *Output) {
	o.Scope = r.scope()
	if o.Key = r.key(); o.Key == "" {
		r.fail(HeaderKey, "there")
	}
	o.Aliases = r.aliases(o.Key)
	o.Matched = r.keyOf(HeaderMatched)
	o.FirstSeenAt = r.time(HeaderFirstSeenAt)
	o.ExpiresAt = r.time(HeaderExpiresAt)
	if !o.ExpiresAt.After(o.FirstSeenAt) {
		r.fail(HeaderExpiresAt, "after "+HeaderFirstSeenAt)
	}
	o.ID = r.id(o.Verdict == ledger.New)
}

// id is of every record in clean. Repeats and INVALID are there where their flow
// only observes.
func (r *headerReader) id(must bool) uuid.UUID {
	text := r.last(HeaderID)
	if text == "" && !must {
		return uuid.Nil
	}
	id, ok := parseUUID(text)
	if !ok {
		r.fail(HeaderID, "a UUID")
	}
	return id
}

// readInvalid reads what an INVALID may have: no row, so no times; perhaps no
// key, perhaps no scope, and an id where it is in clean.
func (r *headerReader) readInvalid(o *Output) {
	o.ID = r.id(false)
	o.Key = r.key()
	if r.last(HeaderScope) != "" {
		o.Scope = r.scope()
	}
	if o.Reason == "" {
		r.fail(HeaderReason, "there")
	}
}

func (r *headerReader) status() (v ledger.Verdict, released bool) {
	switch text := r.last(HeaderStatus); text {
	case StatusReleased:
		return ledger.New, true
	case ledger.New.String():
		return ledger.New, false
	case ledger.Seen.String():
		return ledger.Seen, false
	case ledger.Drift.String():
		return ledger.Drift, false
	case ledger.Invalid.String():
		return ledger.Invalid, false
	default:
		r.fail(HeaderStatus, "one of NEW, RELEASED, SEEN, DRIFT, INVALID")
		return 0, false
	}
}

func (r *headerReader) place(name string) Place {
	p, err := ParsePlace(r.last(name))
	if err != nil {
		r.fail(name, "topic/partition/offset")
	}
	return p
}

func (r *headerReader) scope() Scope {
	s, err := ParseScope(r.last(HeaderScope))
	if err != nil {
		r.fail(HeaderScope, "tenant:flow")
	}
	return s
}

// key takes at most 200 visible ASCII characters: what the column holds. The
// grammar within is msgkey's.
func (r *headerReader) key() string { return r.keyOf(HeaderKey) }

func (r *headerReader) keyOf(name string) string {
	key := r.last(name)
	if !isKey(key) {
		r.fail(name, "a key")
		return ""
	}
	return key
}

func isKey(text string) bool {
	ok := len(text) <= maxKey
	for i := 0; ok && i < len(text); i++ {
		ok = text[i] > ' ' && text[i] < 0x7f
	}
	return ok
}

// aliases takes what a record can have: distinct keys, other than its primary key.
func (r *headerReader) aliases(key string) []string {
	text := r.last(HeaderAliases)
	if text == "" {
		return nil
	}
	all := strings.Split(text, " ")
	for i, alias := range all {
		if alias == "" || !isKey(alias) || alias == key || slices.Contains(all[:i], alias) || i >= ledger.MaxAliases {
			r.fail(HeaderAliases, "a list of keys")
			return nil
		}
	}
	return all
}

func (r *headerReader) reason() string {
	reason := r.last(HeaderReason)
	ok := len(reason) <= maxReason
	for i := 0; ok && i < len(reason); i++ {
		c := reason[i]
		ok = 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-' || c == '/'
	}
	if !ok {
		r.fail(HeaderReason, "a closed code")
		return ""
	}
	return reason
}

// size takes what no Kafka record can exceed. Outputs of version 0.1 have none.
func (r *headerReader) size() int64 {
	text := r.last(HeaderBytes)
	if text == "" {
		return 0
	}
	n, ok := parseNumber(text, math.MaxInt32)
	if !ok {
		r.fail(HeaderBytes, "a number of bytes")
	}
	return n
}

func (r *headerReader) hash(name string) (sum [32]byte) {
	text, _ := Last(r.headers, name)
	if len(text) != hashLength {
		r.fail(name, "64 hex digits")
		return sum
	}
	if _, err := hex.Decode(sum[:], text); err != nil {
		r.fail(name, "64 hex digits")
		return [32]byte{}
	}
	return sum
}

// time takes RFC 3339 with up to nine decimals and keeps the microseconds that
// PostgreSQL stores. Years outside 1970 to 9999 are no registration's.
func (r *headerReader) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.last(name))
	if err != nil || t.UTC().Year() < 1970 || t.UTC().Year() > 9999 {
		r.fail(name, "a time by RFC 3339")
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}
