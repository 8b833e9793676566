package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/integration/laws"
)

// observe reads raw and the outputs; what is expected of a record is found in the
// books by its id.
func (c *campaign) observe(ctx context.Context) (*laws.Observation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleWithin, errors.New("reading all topics took too long"))
	defer cancel()
	o := laws.NewObservation()
	o.Stopped = true
	for _, step := range []func(context.Context, *laws.Observation) error{c.observeTopics, c.observeRaw, c.observeOutputs, c.observeLedger} {
		if err := step(ctx, o); err != nil {
			return nil, err
		}
	}
	o.Taken = time.Now()
	return o, nil
}

// observeTopics names the topics, raw ones by all generations of their partitions.
func (c *campaign) observeTopics(ctx context.Context, o *laws.Observation) error {
	topics, err := c.s.admin.ListTopics(ctx, c.s.raw...)
	if err != nil {
		return fmt.Errorf("asking for topic ids: %w", err)
	}
	ends, err := c.s.admin.ListEndOffsets(ctx, c.s.raw...)
	if err != nil {
		return fmt.Errorf("asking for the ends of raw: %w", err)
	}
	for i, name := range c.s.raw {
		for _, known := range c.tail.gens.names(name) {
			o.CleanOf[known], o.TopicIDs[known] = c.s.outputs[i], uuid.UUID(topics[name].ID)
			if id, former := c.ids[known]; former {
				o.TopicIDs[known] = id
			}
		}
	}
	for _, d := range c.destroyed {
		o.Ended[d.at] = true
	}
	ends.Each(func(l kadm.ListedOffset) {
		o.LogEnds[partitionOf(c.tail.gens.now(l.Topic, l.Partition), l.Partition)] = l.Offset
	})
	return nil
}

func (c *campaign) observeRaw(ctx context.Context, o *laws.Observation) error {
	raw, err := laws.ReadCommitted(ctx, c.s.kafka.Addrs(), c.s.admin, c.s.raw...)
	if err != nil {
		return fmt.Errorf("reading raw: %w", err)
	}
	c.tail.mu.Lock()
	kept := c.tail.kept
	c.tail.mu.Unlock()
	for _, r := range kept {
		b, ok := c.traffic.book(r.id)
		if !ok {
			return fmt.Errorf("raw record %s is in no book", r.place)
		}
		o.Sent[r.place] = &laws.Sent{Place: r.place, Message: b.message, Raw: r.stamp, At: b.at}
		o.Epochs[r.place] = r.epoch
	}
	for _, r := range raw {
		if p := c.tail.gens.raw(r); o.Sent[p] == nil {
			return fmt.Errorf("raw record %s was not read when it came", p)
		}
	}
	return nil
}

func (c *campaign) observeOutputs(ctx context.Context, o *laws.Observation) error {
	outputs, err := laws.ReadCommitted(ctx, c.s.kafka.Addrs(), c.s.admin, c.s.outputs...)
	if err != nil {
		return fmt.Errorf("reading the outputs: %w", err)
	}
	seen := map[laws.Place]bool{}
	for _, r := range slices.Concat(c.saved, outputs) {
		if seen[laws.PlaceOf(r)] {
			continue
		}
		seen[laws.PlaceOf(r)] = true
		out, err := laws.OutputOf(r)
		if err != nil {
			return fmt.Errorf("reading the outputs: %w", err)
		}
		out.Origin = c.tail.gens.origin(out.Origin, laws.PlaceOf(r))
		c.nameFirst(o, r)
		o.Outputs = append(o.Outputs, out)
	}
	return nil
}

// nameFirst puts the generation into what a repeat says of its first: the id
// beside it tells which one it means. A topic that was gone when the filter
// started is told by its id.
func (c *campaign) nameFirst(o *laws.Observation, r *kgo.Record) {
	told, err := laws.ParsePlace(laws.Header(r, "dedup-first-origin"))
	if err != nil {
		return // it is no repeat, or the judgement says so
	}
	for _, p := range c.mayMean(o, told) {
		if o.Sent[p] == nil || o.IDOf(p) != laws.Header(r, "dedup-first-id") {
			continue
		}
		for i := range r.Headers {
			if r.Headers[i].Key == "dedup-first-origin" {
				r.Headers[i].Value = []byte(p.String())
			}
		}
		return
	}
}

// mayMean are the places that a told one may be of.
func (c *campaign) mayMean(o *laws.Observation, told laws.Place) (all []laws.Place) {
	if _, err := uuid.Parse(told.Topic); err != nil {
		return c.tail.gens.named(told)
	}
	for name, id := range o.TopicIDs {
		if id.String() == told.Topic {
			all = append(all, laws.Place{Topic: name, Partition: told.Partition, Offset: told.Offset})
		}
	}
	return all
}

func (c *campaign) observeLedger(ctx context.Context, o *laws.Observation) error {
	db, err := c.s.asAdmin(ctx)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	return errors.Join(o.ReadHours(ctx, db), o.ReadPositions(ctx, db), c.readGaps(ctx, o, db))
}

// readGaps marks what lies in a gap, and what nobody had read when its log was
// destroyed, and has no output.
func (c *campaign) readGaps(ctx context.Context, o *laws.Observation, db *pgx.Conn) error {
	if len(o.TopicIDs) == 0 {
		if err := c.observeTopics(ctx, o); err != nil {
			return err
		}
	}
	if err := o.ReadGaps(ctx, db); err != nil {
		return fmt.Errorf("reading the gaps: %w", err)
	}
	with := map[laws.Place]bool{}
	for _, out := range o.Outputs {
		with[out.Origin] = true
	}
	c.unread = 0
	for p := range o.Sent {
		for _, d := range c.destroyed {
			if !o.Gone[p] && !with[p] && d.undecided(p, o.Epochs[p]) {
				o.Gone[p] = true
				c.unread++
			}
		}
	}
	return nil
}

// save keeps the outputs, which are about to be deleted.
func (c *campaign) save(ctx context.Context) error {
	outputs, err := laws.ReadCommitted(ctx, c.s.kafka.Addrs(), c.s.admin, c.s.outputs...)
	if err != nil {
		return fmt.Errorf("keeping the outputs: %w", err)
	}
	c.saved = append(c.saved, outputs...)
	return nil
}
