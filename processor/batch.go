package processor

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// item is one polled record on its way.
type item struct {
	part *part
	rec  *kgo.Record
	reg  ledger.Registration

	res     ledger.Result
	verdict ledger.Verdict
	reason  string
}

// end is the position behind the item's record.
func (it *item) end() ledger.Position { return it.reg.Origin.Next() }

// batch is what one Kafka transaction takes.
type batch struct {
	items                         []item
	clock                         ledger.Clock // of the first registration: the earliest, so facts never outlive rows
	polled, registered, committed time.Time
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
func chunkOf(items []item) (*ledger.Chunk, []*part) {
	c := &ledger.Chunk{Gate: ledger.GateKafka, Registrations: make([]ledger.Registration, len(items))}
	var parts []*part
	index := make(map[*part]int, 4)
	for i := range items {
		it := &items[i]
		c.Registrations[i] = it.reg
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
