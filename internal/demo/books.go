package demo

import (
	"bytes"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// sent is a raw record that the broker has acknowledged.
type sent struct {
	message
	place topics.Place
}

// output is a committed record of an output topic.
type output struct {
	topics.Output
	place topics.Place
	value []byte
	first []byte // SHA-256 of the accepted payload in hex; DRIFT and SEEN have it
	retry string
}

// books hold what was sent and every output that was committed for it. Both
// sides come from Kafka and from the sender; the filter is not asked.
type books struct {
	sent    []sent
	known   map[topics.Place]int       // index in sent
	outputs map[topics.Place][]output  // by raw place
	clean   map[string][]topics.Place  // by scope and key: raw places in clean, each once
	strange []string                   // outputs that belong to nothing sent
	last    map[string]map[int32]int64 // behind the last record read, control records included
}

func newBooks() *books {
	return &books{
		known: map[topics.Place]int{}, outputs: map[topics.Place][]output{},
		clean: map[string][]topics.Place{}, last: map[string]map[int32]int64{},
	}
}

// book notes an acknowledged record.
func (b *books) book(m message, place topics.Place) {
	b.known[place] = len(b.sent)
	b.sent = append(b.sent, sent{m, place})
}

// take notes a record of an output topic.
func (b *books) take(r *kgo.Record) {
	if b.last[r.Topic] == nil {
		b.last[r.Topic] = map[int32]int64{}
	}
	b.last[r.Topic][r.Partition] = r.Offset + 1
	if r.Attrs.IsControl() {
		return
	}
	place := topics.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
	read, err := topics.ReadOutput(r)
	if err != nil {
		b.strange = append(b.strange, fmt.Sprintf("%s: %s", place, err))
		return
	}
	i, ok := b.known[read.Origin]
	if !ok {
		b.strange = append(b.strange, fmt.Sprintf("%s is the output of %s, which was not sent", place, read.Origin))
		return
	}
	o := output{Output: read, place: place, value: r.Value}
	o.first, _ = topics.Last(r.Headers, topics.HeaderFirstSHA256)
	if retry, ok := topics.Last(r.Headers, topics.HeaderRetryCount); ok {
		o.retry = string(retry)
	}
	if read.Verdict == ledger.New && len(b.outputs[read.Origin]) == 0 {
		key := b.sent[i].scope + " " + b.sent[i].key
		b.clean[key] = append(b.clean[key], read.Origin)
	}
	b.outputs[read.Origin] = append(b.outputs[read.Origin], o)
}

// missing counts the records from index on that have no committed output yet.
func (b *books) missing(from int) int {
	n := 0
	for i := from; i < len(b.sent); i++ {
		if len(b.outputs[b.sent[i].place]) == 0 {
			n++
		}
	}
	return n
}

// behind reports whether all records before the ends were read.
func (b *books) behind(ends map[string]map[int32]int64) bool {
	for topic, partitions := range ends {
		for p, end := range partitions {
			if b.last[topic][p] < end {
				return false
			}
		}
	}
	return true
}

// tally is what became of a range of records.
type tally struct {
	in       int
	verdicts map[ledger.Verdict]int // by first output
	lost     int                    // records without an output
	repeated int                    // outputs beyond one of a record
	doubled  int                    // records in clean beyond one of a key
	faults   []string               // in words; losses and doubles are among them
}

// count judges the records from index on; keys and strange outputs over all.
func (b *books) count(from int) tally {
	t := tally{in: len(b.sent) - from, verdicts: map[ledger.Verdict]int{}}
	for i := from; i < len(b.sent); i++ {
		s := &b.sent[i]
		outs := b.outputs[s.place]
		if len(outs) == 0 {
			t.lost++
			t.fault("%s (%s) has no output", s.place, s.key)
			continue
		}
		t.verdicts[outs[0].Verdict]++
		if extra := len(outs) - 1; extra > 0 {
			t.repeated += extra
			t.fault("%s has %d outputs", s.place, len(outs))
		}
		t.compare(s, &outs[0])
	}
	for key, places := range b.clean {
		if extra := len(places) - 1; extra > 0 {
			t.doubled += extra
			t.fault("%s is in clean %d times: %v", key, len(places), places)
		}
	}
	t.faults = append(t.faults, b.strange...)
	return t
}

// compare finds a wrong verdict, key or payload.
func (t *tally) compare(s *sent, o *output) {
	if o.Verdict != s.want {
		t.fault("%s is %s at %s, should be %s", s.place, o.Verdict, o.place, s.want)
	}
	if o.Key != s.key || o.Scope.String() != s.scope {
		t.fault("%s has key %q of %s, should be %q of %s", s.place, o.Key, o.Scope, s.key, s.scope)
	}
	if !bytes.Equal(o.value, s.value) {
		t.fault("%s has another payload at %s", s.place, o.place)
	}
}

func (t *tally) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// is reports whether nothing is wrong and the verdicts are these.
func (t *tally) is(fresh, seen, drift, invalid int) bool {
	return len(t.faults) == 0 && t.in == fresh+seen+drift+invalid &&
		t.verdicts[ledger.New] == fresh && t.verdicts[ledger.Seen] == seen &&
		t.verdicts[ledger.Drift] == drift && t.verdicts[ledger.Invalid] == invalid
}
