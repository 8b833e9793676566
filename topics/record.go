package topics

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// Facts is what the decision says of one raw record.
type Facts struct {
	Origin        ledger.Origin // of this record
	Scope         string        // tenant:flow; "" where it cannot be read
	Key           string        // the final key; "" where there is none
	Aliases       []ledger.Key  // further keys of the record
	Matched       string        // as ledger.Result
	Verdict       ledger.Verdict
	Reason        string // closed code, or ""
	PayloadSHA256 [32]byte
	Entry         ledger.Entry // the live row; for a NEW its own. Not read for INVALID
	Repeat        int64        // repeats including this one; of SEEN and DRIFT
	Omit          bool         // a SEEN or DRIFT leaves its value out, in duplicates
	Observed      bool         // goes to clean, whatever its verdict: its flow only observes
}

// Builder makes the output records of one raw topic. Outputs share the memory
// of the input's key, value and foreign headers, so the input must not be
// recycled or written to before they are produced. For one goroutine at a time.
type Builder struct {
	route                  *Route
	clean                  target
	duplicates, deadLetter map[string]target // by scope; those that are there
	rawCount               int32
	count                  func(topic string) int32
	name                   func(ledger.TopicID) string
}

type target struct {
	topic string
	count int32 // 0: not there
}

// maxTargets bounds what a builder remembers of scopes, which anybody who may
// write to a raw topic chooses.
const maxTargets = 1024

// NewBuilder takes the topics' names and partition counts. name tells a topic's
// present name from its id, for the origin of a row's first record, and falls
// back to the id's text; Layout.Name does.
func NewBuilder(route *Route, l *Layout, name func(ledger.TopicID) string) (*Builder, error) {
	b := &Builder{
		route: route, rawCount: l.Count(route.Raw), count: l.Count, name: name,
		duplicates: map[string]target{}, deadLetter: map[string]target{},
	}
	for _, topic := range route.Known() {
		if l.Count(topic) < 1 {
			return nil, fmt.Errorf("raw topic %q: building for output topic %q, whose partitions are not known", route.Raw, topic)
		}
	}
	if b.rawCount < 1 {
		return nil, fmt.Errorf("raw topic %q: its partitions are not known", route.Raw)
	}
	b.clean = target{route.Clean, l.Count(route.Clean)}
	return b, nil
}

// target is the topic of a scope's text, which is empty where it cannot be read.
func (b *Builder) target(known map[string]target, of func(Scope) string, scope string) target {
	if t, ok := known[scope]; ok {
		return t
	}
	s, _ := ParseScope(scope) // unreadable: the zero scope
	t := target{topic: of(s)}
	if t.count = b.count(t.topic); t.count == 0 {
		return t // asked for again once it is there
	}
	if len(known) >= maxTargets {
		clear(known)
	}
	known[scope] = t
	return t
}

// Output builds the one output of a record: clean for NEW and for what is
// Observed, duplicates for SEEN and DRIFT, dead-letter for INVALID. A topic that depends on the record's scope
// may not be there: then the layout does not count its partitions, and the
// output must not be produced.
func (b *Builder) Output(in *kgo.Record, f *Facts) *kgo.Record {
	switch {
	case f.Verdict == ledger.New || f.Observed:
		return b.Clean(in, f)
	case f.Verdict == ledger.Seen || f.Verdict == ledger.Drift:
		return b.Duplicate(in, f)
	default:
		return b.DeadLetter(in, f)
	}
}

// Clean passes the record on: key, value (nil stays nil), timestamp, partition
// and foreign headers as they came, ours behind them. The id is the record's own,
// also of a repeat that is only observed: each is a message of its own to readers.
// One that is INVALID has no row, so no times, and perhaps no key.
func (b *Builder) Clean(in *kgo.Record, f *Facts) *kgo.Record {
	ours := 8
	if f.Reason != "" {
		ours++
	}
	own := in.Topic
	if len(f.Aliases) > 0 || f.Matched != "" {
		ours += 2
		if len(own) > uuidLength && cleanNames+cleanFixed+len(own)+len(f.Key)+len(f.Scope)+len(f.Reason)+aliasesLength(f)+matchedLength(f) > maxOurHeaders {
			own = f.Origin.Topic.String()
		}
	}
	w := newHeaderWriter(in, f, ours, cleanFixed+len(own))
	w.optional(HeaderKey, f.Key)
	w.text(HeaderScope, f.Scope)
	id := f.Origin.ID()
	w.uuid(HeaderID, id)
	w.text(HeaderStatus, f.Verdict.String())
	w.place(HeaderOrigin, own, f.Origin)
	if f.Verdict != ledger.Invalid {
		w.window(&f.Entry)
	}
	w.hash(HeaderSHA256, &f.PayloadSHA256)
	w.optional(HeaderReason, f.Reason)
	w.optional(HeaderMatched, f.Matched)
	w.aliases(f.Aliases)
	return b.record(in, b.clean, w.headers)
}

// Duplicate is the full copy of a repeat for the audit, with what is known of
// the accepted record. With Omit it has no value, and HeaderPayload says so.
func (b *Builder) Duplicate(in *kgo.Record, f *Facts) *kgo.Record {
	own, first := in.Topic, ""
	if f.Entry.Origin.Gate == ledger.GateKafka {
		first = b.name(f.Entry.Origin.Topic)
	}
	// Headers stay below 1 KiB. Two topic names of up to 249 characters, a long
	// key and a long scope together would not: then ids of 36 characters take
	// the place of the names, that of the first record before the own one. What a
	// repeat by an alias was matched by is told whatever it takes: learning finds
	// the row by it. Its own aliases are told if there is room.
	room := maxOurHeaders - duplicateFixed - len(f.Key) - len(f.Scope) - len(f.Reason) - matchedLength(f)
	if len(own)+len(first) > room && first != "" {
		first = f.Entry.Origin.Topic.String()
	}
	if len(own)+len(first) > room {
		own = f.Origin.Topic.String()
	}
	w := newHeaderWriter(in, f, 16, widest(in))
	w.text(HeaderKey, f.Key)
	w.text(HeaderScope, f.Scope)
	w.text(HeaderStatus, f.Verdict.String())
	w.place(HeaderOrigin, own, f.Origin)
	w.window(&f.Entry)
	if first != "" { // an API registration has no place; its id comes with the API
		w.place(HeaderFirstOrigin, first, f.Entry.Origin)
		w.uuid(HeaderFirstID, f.Entry.Origin.ID())
	}
	w.hash(HeaderFirstSHA256, &f.Entry.PayloadSHA256)
	w.hash(HeaderSHA256, &f.PayloadSHA256)
	w.number(HeaderRetryCount, f.Repeat)
	w.optional(HeaderReason, f.Reason)
	w.optional(HeaderMatched, f.Matched)
	if aliasesLength(f) <= room-len(own)-len(first) {
		w.aliases(f.Aliases)
	}
	if f.Omit {
		w.without(PayloadOmitted, len(in.Value))
	}
	out := b.record(in, b.target(b.duplicates, b.route.Duplicates, f.Scope), w.headers)
	if f.Omit {
		out.Value = nil
	}
	return out
}

// DeadLetter is the full copy of a record that cannot be judged, with the code.
// One above max_record_bytes is a reference at once: no output takes its value.
func (b *Builder) DeadLetter(in *kgo.Record, f *Facts) *kgo.Record {
	if f.Reason == CodeRecordTooLarge {
		return b.Reference(in, f, time.Time{})
	}
	return b.record(in, b.dead(f), b.deadHeaders(in, f).headers)
}

// Reference is a dead letter without the value: HeaderPayload says so, and
// HeaderOrigin tells where the bytes are while raw keeps them. With a time it is
// the last resort for a record whose first form dead-letter refused, and the
// time takes the timestamp's place, which may be what was refused. A reference
// must always fit: a key, or foreign headers, of more than 32 KiB in all are
// left out as well.
func (b *Builder) Reference(in *kgo.Record, f *Facts, at time.Time) *kgo.Record {
	bare := *in
	bare.Value = nil
	if len(bare.Key) > maxReferenceCarries {
		bare.Key = nil
	}
	size := len(bare.Key)
	for i := range in.Headers {
		size += len(in.Headers[i].Key) + len(in.Headers[i].Value) + headerOverhead
	}
	if size > maxReferenceCarries {
		bare.Headers = nil
	}
	if !at.IsZero() {
		bare.Timestamp = at
	}
	w := b.deadHeaders(&bare, f)
	w.without(PayloadReference, len(in.Value))
	out := b.record(&bare, b.dead(f), w.headers)
	// The partition is that of the full form, so that it is found there.
	out.Partition = Partition(in.Key, in.Partition, b.rawCount, b.dead(f).count)
	return out
}

func (b *Builder) dead(f *Facts) target { return b.target(b.deadLetter, b.route.DeadLetter, f.Scope) }

func (b *Builder) deadHeaders(in *kgo.Record, f *Facts) headerWriter {
	w := newHeaderWriter(in, f, 8, widest(in))
	w.optional(HeaderKey, f.Key)
	w.optional(HeaderScope, f.Scope)
	w.text(HeaderStatus, ledger.Invalid.String())
	w.place(HeaderOrigin, in.Topic, f.Origin)
	w.hash(HeaderSHA256, &f.PayloadSHA256)
	w.text(HeaderReason, f.Reason)
	return w
}

func (b *Builder) record(in *kgo.Record, to target, headers []kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{
		Key:       in.Key,
		Value:     in.Value,
		Headers:   headers,
		Timestamp: in.Timestamp,
		Topic:     to.topic,
		Partition: Partition(in.Key, in.Partition, b.rawCount, to.count),
	}
}
