package processor

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// item is one polled record on its way. Its registration and result are the
// batch's.
type item struct {
	part *part
	rec  *kgo.Record
	reg  *ledger.Registration

	observe   bool // the rules say: nothing is dropped
	noPayload bool // the rules say: repeats go without their value

	res     *ledger.Result
	verdict ledger.Verdict
	reason  string
}

// observed reports whether the record goes to clean although it would not in a
// flow that enforces. Its status tells what would have become of it.
func (it *item) observed() bool { return it.observe && observes(it.verdict, it.reason) }

// end is the position behind the item's record.
func (it *item) end() ledger.Position { return it.reg.Origin.Next() }

// batch is what one Kafka transaction takes. A session has one, whose memory it
// uses again for the next: nothing outside keeps a part of it.
type batch struct {
	items   []item
	regs    []ledger.Registration // of items, in their order
	results []ledger.Result       // likewise, once registered
	keys    []ledger.Key          // that regs refer to

	clock                         ledger.Clock // of the first registration: the earliest, so facts never outlive rows
	polled, registered, committed time.Time
}

// reset empties the batch and makes room for n records. Room is never made
// later, since items point into the slices.
func (b *batch) reset(n int) {
	items, regs, results, keys := b.items, b.regs, b.results, b.keys
	if cap(items) < n {
		items, regs = make([]item, 0, n), make([]ledger.Registration, 0, n)
		results, keys = make([]ledger.Result, 0, n), make([]ledger.Key, 0, n)
	}
	// What the last batch referred to may be large.
	clear(items)
	clear(regs)
	clear(results)
	clear(keys)
	*b = batch{items: items[:0], regs: regs[:0], results: results[:0], keys: keys[:0], polled: time.Now()}
}

// add takes a record, whose registration is still to be filled in.
func (b *batch) add(p *part, rec *kgo.Record) *item {
	n := len(b.items)
	b.regs, b.results = b.regs[:n+1], b.results[:n+1]
	b.items = append(b.items, item{part: p, rec: rec, reg: &b.regs[n], res: &b.results[n]})
	return &b.items[n]
}

// key keeps the keys of a registration: each once, and no more aliases than a
// record can have. Those of one before keep their place where more room is made.
func (b *batch) key(k ledger.Key, aliases []string) []ledger.Key {
	n := len(b.keys)
	b.keys = append(b.keys, k)
	for _, alias := range aliases {
		if len(b.keys)-n > ledger.MaxAliases {
			break
		}
		if !slices.ContainsFunc(b.keys[n:], func(known ledger.Key) bool { return known.Key == alias }) {
			b.keys = append(b.keys, ledger.Key{Scope: k.Scope, Key: alias, Window: k.Window})
		}
	}
	return b.keys[n:len(b.keys):len(b.keys)]
}

// ends is the position behind the last record of each partition in the batch.
func (b *batch) ends() map[*part]ledger.Position {
	m := make(map[*part]ledger.Position, 8)
	for i := range b.items {
		m[b.items[i].part] = b.items[i].end()
	}
	return m
}

// chunk is the registration of a stretch of items, with the advance of each of
// their partitions.
func (b *batch) chunk(from, to int) (*ledger.Chunk, []*part) {
	items := b.items[from:to]
	c := &ledger.Chunk{Gate: ledger.GateKafka, Registrations: b.regs[from:to:to]}
	var parts []*part
	index := make(map[*part]int, 4)
	for i := range items {
		it := &items[i]
		n, ok := index[it.part]
		if !ok {
			n = len(parts)
			index[it.part] = n
			parts = append(parts, it.part)
			c.Advances = append(c.Advances, it.part.advance(it.end()))
		}
		c.Advances[n].NewD = c.Advances[n].NewD.Max(it.end())
	}
	return c, parts
}
