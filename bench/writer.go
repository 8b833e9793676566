package main

import (
	"context"
	"fmt"

	"dedupledger/internal/rules"
	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// benchTopic stands for the raw topic's id.
func benchTopic() ledger.TopicID { return ledger.TopicID{0xbe} }

// writer is one connection with the partitions of its flows.
type writer struct {
	cold  *cold.Ledger
	flows []*writtenFlow // by scope's number; nil: another writer's
	next  [][]ledger.Registration
}

// writtenFlow is a flow with its partition's position, as a session keeps it.
type writtenFlow struct {
	*flow
	claim ledger.Claim
	seq   int64
	d     ledger.Position
}

// newWriter takes every of-th flow and opens the positions of their
// partitions.
func (s *stage) newWriter(ctx context.Context, l *cold.Ledger, i, of int) (*writer, error) {
	w := &writer{cold: l, flows: make([]*writtenFlow, len(s.flows))}
	for n := i; n < len(s.flows); n += of {
		f := &writtenFlow{flow: &s.flows[n], claim: ledger.NewClaim()}
		w.flows[n] = f
		key := ledger.PositionKey{Partition: f.place(), Topic: s.raw, Group: "bench"}
		if _, err := l.OpenPosition(ctx, key, f.claim, ledger.Position{}, nil); err != nil {
			return nil, fmt.Errorf("opening a position: %w", err)
		}
	}
	return w, nil
}

func (f *writtenFlow) place() ledger.Partition {
	return ledger.Partition{Topic: benchTopic(), Partition: f.partition}
}

// layOut makes chunks of the writer's own messages in the stretch.
func (w *writer) layOut(from, to int64, keyer rules.Keyer) {
	w.next = nil
	var chunk []ledger.Registration
	for n := from; n < to; n++ {
		index, offset := placed(n)
		f := w.flows[index]
		if f == nil {
			continue
		}
		chunk = append(chunk, registration(f.flow, n, offset, keyer))
		if len(chunk) == ledger.MaxChunk {
			w.next, chunk = append(w.next, chunk), nil
		}
	}
	if len(chunk) > 0 {
		w.next = append(w.next, chunk)
	}
}

// run registers what was laid out, chunk after chunk, as a session does: with D
// and seq from the answer before, and W behind the chunk before.
func (w *writer) run(ctx context.Context) error {
	for _, registrations := range w.next {
		c := &ledger.Chunk{Gate: ledger.GateKafka, Registrations: registrations}
		flows := w.advance(c)
		a, err := w.cold.Register(ctx, c)
		if err != nil {
			return fmt.Errorf("registering: %w", err)
		}
		for i, f := range flows {
			f.seq, f.d = a.Seqs[i], c.Advances[i].NewD
		}
	}
	return nil
}

// advance adds the advances of the chunk's partitions.
func (w *writer) advance(c *ledger.Chunk) (flows []*writtenFlow) {
	var at [partitions]int // 1-based
	for i := range c.Registrations {
		o := &c.Registrations[i].Origin
		if at[o.Partition] == 0 {
			f := w.of(o.Partition)
			flows = append(flows, f)
			c.Advances = append(c.Advances, ledger.Advance{
				Partition: f.place(), Claim: f.claim, Seq: f.seq, D: f.d, W: f.d,
				Outputs: ledger.Outputs{"clean.bench": {f.partition: f.d.Offset}, "duplicates": {f.partition: f.d.Offset}},
			})
			at[o.Partition] = len(flows)
		}
		c.Advances[at[o.Partition]-1].NewD = o.Next()
	}
	return flows
}

func (w *writer) of(partition int32) *writtenFlow {
	for _, f := range w.flows {
		if f != nil && f.partition == partition {
			return f
		}
	}
	return nil // registrations are of our own flows alone
}
