package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/integration/laws"
)

// Faults of the raw topics themselves.

// destroyed are the records of a generation of a raw partition that are gone from
// it: deleted with their topic, or cut. From d on nothing was decided: no filter
// has read them, so nobody can record that they are gone.
type destroyed struct {
	at   laws.Place // by the generation's name
	from int64
	d    spot
}

func (d *destroyed) undecided(p laws.Place, epoch int32) bool {
	return partitionOf(p.Topic, p.Partition) == d.at && p.Offset >= d.from && !(spot{epoch, p.Offset}).before(d.d)
}

// resting returns the ends of topics once no transaction is open on them and
// whoever follows has read up to there.
func (c *campaign) resting(ctx context.Context, names ...string) (map[laws.Place]int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverWithin, fmt.Errorf("%v do not come to rest", names))
	defer cancel()
	var listed kadm.ListedOffsets
	err := until(ctx, func() (bool, error) {
		var err error
		listed, err = laws.Settled(ctx, c.s.admin, names)
		if ctx.Err() == nil && kerr.IsRetriable(err) {
			return false, nil // as after an election: the leader does not know yet
		}
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for open transactions: %w", err)
	}
	ends := map[laws.Place]int64{}
	listed.Each(func(l kadm.ListedOffset) {
		ends[partitionOf(l.Topic, l.Partition)] = l.Offset
	})
	return ends, c.tail.awaitRead(ctx, ends)
}

func (c *campaign) restingOutputs(ctx context.Context) (map[laws.Place]int64, error) {
	return c.resting(ctx, c.s.outputs...)
}

// decided is D of every partition of a raw topic.
func (c *campaign) decided(ctx context.Context, id uuid.UUID) (map[int32]spot, error) {
	db, err := c.s.asAdmin(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	rows, err := db.Query(ctx, `select partition, d_epoch, d_offset from dedup_position where topic_id = $1`, id)
	if err != nil {
		return nil, fmt.Errorf("reading the positions: %w", err)
	}
	defer rows.Close()
	all := map[int32]spot{}
	for rows.Next() {
		var p int32
		var d spot
		if err := rows.Scan(&p, &d.epoch, &d.offset); err != nil {
			return nil, fmt.Errorf("reading the positions: %w", err)
		}
		all[p] = d
	}
	return all, rows.Err()
}

func (c *campaign) topicID(ctx context.Context, name string) (uuid.UUID, error) {
	topics, err := c.s.admin.ListTopics(ctx, name)
	if err := errors.Join(err, topics.Error()); err != nil {
		return uuid.UUID{}, fmt.Errorf("asking for a topic's id: %w", err)
	}
	return uuid.UUID(topics[name].ID), nil
}

// recreate deletes a raw topic and makes it again, under running filters that have
// handled all of it, or after a kill, with records that nobody has read.
func recreate(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	n := rng.IntN(len(c.s.raw))
	name := c.s.raw[n]
	killed := c.everySecond("recreate")
	var all []int
	if killed {
		var err error
		if all, err = c.crew.endAll(ctx, true); err != nil {
			return time.Now(), err
		}
		if err := hold(ctx, between(rng, time.Second, 3*time.Second)); err != nil {
			return time.Now(), err
		}
	}
	c.traffic.hold(n, true)
	defer c.traffic.hold(n, false)
	if _, err := c.resting(ctx, name); err != nil {
		return time.Now(), err
	}
	if !killed {
		within, cancel := context.WithTimeoutCause(ctx, recoverWithin, fmt.Errorf("not all of %s is handled within %s", name, recoverWithin))
		defer cancel()
		if err := c.awaitHandled(within, c.tail.gens.names(name)...); err != nil {
			return time.Now(), err
		}
	}
	id, err := c.topicID(ctx, name)
	if err != nil {
		return time.Now(), err
	}
	c.note("%s, filters killed: %v", name, killed)
	c.gaps++
	if err := c.remake(ctx, name, id, killed); err != nil {
		return time.Now(), err
	}
	since := time.Now()
	err = c.crew.startAll(all)
	c.traffic.renew()
	return since, err
}

// remake deletes the topic, begins a generation and makes it again.
func (c *campaign) remake(ctx context.Context, name string, id uuid.UUID, retireFirst bool) error {
	border, err := c.outputEnds(ctx, retireFirst)
	if err != nil {
		return err
	}
	gone, err := c.s.admin.DeleteTopics(ctx, name)
	if err := errors.Join(err, gone.Error()); err != nil {
		return fmt.Errorf("deleting a raw topic: %w", err)
	}
	if err := c.everyBroker(ctx, name, func(t kmsg.MetadataResponseTopic) bool { return t.ErrorCode == kerr.UnknownTopicOrPartition.Code }); err != nil {
		return err
	}
	c.tail.forget(name)
	d, err := c.decided(ctx, id)
	if err != nil {
		return err
	}
	c.supersede(name, id, border, d)
	// With as many partitions as it had: so many its clean topic has.
	made, err := c.s.admin.CreateTopic(ctx, int32(c.s.width(name)), brokers, nil, name)
	if err := errors.Join(err, made.Err); err != nil {
		return fmt.Errorf("making a raw topic again: %w", err)
	}
	if err := c.everyBroker(ctx, name, func(t kmsg.MetadataResponseTopic) bool { return len(t.Partitions) == c.s.width(name) }); err != nil {
		return err
	}
	c.tail.follow(name)
	return c.operate(ctx, "topics", "retire", name+"@"+id.String(), "--assume", "committed")
}

// supersede begins a generation of every partition of a topic.
func (c *campaign) supersede(name string, id uuid.UUID, border map[laws.Place]int64, d map[int32]spot) {
	for p := range int32(c.s.width(name)) {
		now := c.tail.gens.now(name, p)
		c.ids[now] = id
		c.destroyed = append(c.destroyed, destroyed{at: partitionOf(now, p), d: d[p]})
		c.tail.gens.begin(partitionOf(name, p), generation{above: -1, border: border})
	}
}

// outputEnds are where the outputs end now. Where filters were killed, nothing of
// theirs is open any more.
func (c *campaign) outputEnds(ctx context.Context, killed bool) (map[laws.Place]int64, error) {
	if killed {
		return c.restingOutputs(ctx)
	}
	listed, err := c.s.admin.ListEndOffsets(ctx, c.s.outputs...)
	if err := errors.Join(err, listed.Error()); err != nil {
		return nil, fmt.Errorf("asking where the outputs end: %w", err)
	}
	ends := map[laws.Place]int64{}
	listed.Each(func(l kadm.ListedOffset) { ends[partitionOf(l.Topic, l.Partition)] = l.Offset })
	return ends, nil
}

// mostPartitions bounds what grow makes.
const mostPartitions = 8

// grow adds a partition to all outputs and then to a raw topic, as
// docs/operations.md has it, under running filters. The fault before is over: a
// session that starts between the two steps sees counts that differ, and goes by
// record key until the next rebalance, which the order of the outputs would show.
func grow(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	name := c.s.raw[rng.IntN(len(c.s.raw))]
	to := c.s.width(name) + 1
	if to > mostPartitions {
		c.note("%s has %d already", name, to-1)
		return time.Now(), nil
	}
	if _, err := c.recover(ctx, c.tail.mark()); err != nil {
		return time.Now(), err
	}
	c.note("%s to %d", name, to)
	clean := c.s.outputs[slices.Index(c.s.raw, name)]
	for _, topic := range []string{clean, c.s.outputs[len(c.s.raw)], c.s.outputs[len(c.s.raw)+1], name} {
		if c.s.width(topic) >= to {
			continue
		}
		grown, err := c.s.admin.UpdatePartitions(ctx, to, topic)
		if err := errors.Join(err, grown.Error()); err != nil {
			return time.Now(), fmt.Errorf("adding a partition: %w", err)
		}
		if err := c.everyBroker(ctx, topic, func(t kmsg.MetadataResponseTopic) bool { return len(t.Partitions) == to }); err != nil {
			return time.Now(), err
		}
		letGo := c.traffic.stop()
		if topic == name { // a name of its own, whichever topic of this name it belongs to
			c.tail.gens.begin(partitionOf(name, int32(to-1)), generation{above: -1})
		}
		c.s.widen(topic, to)
		letGo()
	}
	since := time.Now()
	c.watchFrom(ctx, since)
	// A session keeps what it knows of the outputs until a rebalance or its start,
	// and its positions name the counts of before. Were PostgreSQL to lose commits
	// now, with outputs expired, those partitions could not learn.
	return since, c.roll(ctx)
}

// roll starts the filters again, one after the other.
func (c *campaign) roll(ctx context.Context) error {
	for _, way := range c.crew.running() {
		if err := errors.Join(c.crew.term(ctx, way), c.crew.start(way)); err != nil {
			return err
		}
	}
	return nil
}

// everyBroker waits until all tell that of a topic: a producer asks any of them.
func (c *campaign) everyBroker(ctx context.Context, name string, is func(kmsg.MetadataResponseTopic) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverWithin, fmt.Errorf("not every broker tells of %s what it is", name))
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	req.Topics = append(req.Topics, topic)
	return until(ctx, func() (bool, error) {
		for n := range brokers {
			resp, err := req.RequestWith(ctx, c.s.client.Broker(n+1))
			if err != nil || len(resp.Topics) != 1 || !is(resp.Topics[0]) {
				return false, nil //nolint:nilerr // asked again
			}
		}
		return true, nil
	})
}
