package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"dedupledger/integration/laws"
)

func killBroker(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	n := rng.IntN(brokers)
	b := c.s.kafka.Brokers[n]
	down := between(rng, time.Second, 15*time.Second)
	c.note("%s for %s", b.Addr(), down.Round(time.Second))
	since := time.Now()
	if err := b.Kill(); err != nil {
		return since, fmt.Errorf("killing a broker: %w", err)
	}
	// What the others take over counts: two of three go on.
	c.watchFrom(ctx, since)
	looking, enough := context.WithCancel(ctx)
	defer enough()
	led := make(chan time.Duration, 1)
	go func() {
		if c.ledByOthers(looking, int32(n+1)) == nil {
			led <- time.Since(since)
		}
	}()
	err := errors.Join(hold(ctx, down), b.Start(ctx), c.inSync(ctx))
	select {
	case after := <-led:
		c.note("%s, led by others after %s", c.noted, after.Round(100*time.Millisecond))
	default: // it was back before
	}
	return since, err
}

// ledByOthers waits until every partition has a leader that is not this broker: all
// that a client can do before is to ask again.
func (c *campaign) ledByOthers(ctx context.Context, id int32) error {
	return until(ctx, func() (bool, error) {
		topics, err := c.s.admin.ListTopicsWithInternal(kadm.WithAuthorizedOps(ctx)) // past the client's cache
		if err != nil || len(topics) == 0 {
			return false, nil //nolint:nilerr // asked again
		}
		for _, t := range topics {
			for _, p := range t.Partitions {
				if p.Err != nil || p.Leader < 0 || p.Leader == id {
					return false, nil //nolint:nilerr // it has no leader, and is asked again
				}
			}
		}
		return true, nil
	})
}

func termBroker(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	b := c.s.kafka.Brokers[rng.IntN(brokers)]
	c.note("%s", b.Addr())
	since := time.Now()
	if err := b.Stop(ctx); err != nil {
		return since, fmt.Errorf("stopping a broker: %w", err)
	}
	c.watchFrom(ctx, since)
	return since, errors.Join(hold(ctx, between(rng, 0, 5*time.Second)), b.Start(ctx), c.inSync(ctx))
}

// inSync waits until every partition has all its replicas: a second broker that
// ends before would leave one, and Kafka itself would stop.
func (c *campaign) inSync(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverWithin, errors.New("replicas do not come in sync"))
	defer cancel()
	return until(ctx, func() (bool, error) {
		topics, err := c.s.admin.ListTopicsWithInternal(ctx)
		if err != nil || len(topics) == 0 {
			return false, nil //nolint:nilerr // asked again
		}
		for _, t := range topics {
			for _, p := range t.Partitions {
				if len(p.ISR) < len(p.Replicas) {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

// until asks until it is true.
func until(ctx context.Context, is func() (bool, error)) error {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		if yes, err := is(); err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-every.C:
		}
	}
}

func moveLeaders(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	return time.Now(), c.move(ctx, rng, append(append([]string{}, c.s.raw...), c.s.outputs...)...)
}

func moveCoordinators(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	return time.Now(), c.move(ctx, rng, "__consumer_offsets", "__transaction_state")
}

// move puts another replica first and lets it be elected.
func (c *campaign) move(ctx context.Context, rng *rand.Rand, names ...string) error {
	topics, err := c.s.admin.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return fmt.Errorf("asking for leaders: %w", err)
	}
	var to kadm.AlterPartitionAssignmentsReq
	which := kadm.TopicsSet{}
	for _, name := range names { // in this order: the draws are the seed's
		for n := range int32(len(topics[name].Partitions)) {
			p, ok := topics[name].Partitions[n]
			if !ok || len(p.Replicas) < 2 || rng.IntN(2) == 0 {
				continue
			}
			order := []int32{}
			for _, r := range p.Replicas {
				if r != p.Leader {
					order = append(order, r)
				}
			}
			to.Assign(name, n, append(order, p.Leader))
			which.Add(name, n)
		}
	}
	if len(which) == 0 {
		return nil
	}
	c.note("%d of %s", len(which.Sorted()), strings.Join(names, ", "))
	moved, err := c.s.admin.AlterPartitionAssignments(ctx, to)
	if err := errors.Join(err, moved.Error()); err != nil {
		return fmt.Errorf("ordering replicas: %w", err)
	}
	if _, err := c.s.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, which); err != nil {
		return fmt.Errorf("electing leaders: %w", err)
	}
	return nil
}

// offsets is another tool at the group's offsets, while the filters are stopped or
// were killed. None of it may be obeyed.
func offsets(how string) func(context.Context, *campaign, *rand.Rand) (time.Time, error) {
	return func(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
		all, end, err := c.away(ctx, "offsets "+how)
		if err == nil {
			err = c.reset(ctx, rng, how)
		}
		since := time.Now()
		if err := errors.Join(err, c.crew.startAll(all)); err != nil {
			return since, err
		}
		words, err := c.settleAll(ctx, since)
		c.note("filters %s, %d settled", end, words["committed"]+words["aborted"])
		return since, err
	}
}

// vacate takes static members out of the group, as an operator does.
func (c *campaign) vacate(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverWithin, errors.New("the group does not become empty"))
	defer cancel()
	return until(ctx, func() (bool, error) {
		d, err := c.s.admin.DescribeGroups(ctx, c.s.group)
		g := d[c.s.group]
		if err != nil || g.Err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		if len(g.Members) == 0 {
			return g.State == "Empty" || g.State == "Dead", nil
		}
		var leave []string
		for _, m := range g.Members {
			if m.InstanceID != nil {
				leave = append(leave, *m.InstanceID)
			}
		}
		// Who is left is asked again.
		_, _ = c.s.admin.LeaveGroup(ctx, kadm.LeaveGroup(c.s.group).InstanceIDs(leave...))
		return false, nil
	})
}

// reset sets the group's offsets "forward", "back", "to a time", or has them
// "deleted".
func (c *campaign) reset(ctx context.Context, rng *rand.Rand, how string) error {
	was, err := c.s.admin.FetchOffsets(ctx, c.s.group)
	if err != nil {
		return fmt.Errorf("asking for the group's offsets: %w", err)
	}
	var to kadm.Offsets
	gone := kadm.TopicsSet{}
	byTime, err := c.s.admin.ListOffsetsAfterMilli(ctx, time.Now().Add(-10*time.Second).UnixMilli(), c.s.raw...)
	if err != nil {
		return fmt.Errorf("asking for offsets by time: %w", err)
	}
	was.Each(func(o kadm.OffsetResponse) {
		at := o.At
		switch how {
		case "forward":
			at += 1 + rng.Int64N(200)
		case "back":
			at /= 2
		case "to a time":
			if l, ok := byTime.Lookup(o.Topic, o.Partition); ok {
				at = l.Offset
			}
		}
		to.AddOffset(o.Topic, o.Partition, at, -1)
		gone.Add(o.Topic, o.Partition)
	})
	if how == "deleted" {
		_, err = c.s.admin.DeleteOffsets(ctx, c.s.group, gone)
	} else {
		_, err = c.s.admin.CommitOffsets(ctx, c.s.group, to)
	}
	if err != nil {
		return fmt.Errorf("setting the group's offsets: %w", err)
	}
	return nil
}

// expire deletes records of one raw partition that no filter has read: a gap.
// Whoever watches has read them.
func expire(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	all, how, err := c.away(ctx, "expired")
	if err != nil {
		return time.Now(), err
	}
	if err := hold(ctx, between(rng, time.Second, 4*time.Second)); err != nil {
		return time.Now(), err
	}
	name := c.s.raw[rng.IntN(len(c.s.raw))]
	p := int32(rng.IntN(c.s.width(name)))
	before := c.tail.end(name, p)
	c.note("%s/%d before %d, filters %s", name, p, before, how)
	c.gaps++
	gone, err := c.s.admin.DeleteRecords(ctx, offsetsOf(map[laws.Place]int64{partitionOf(name, p): before}))
	err = errors.Join(err, gone.Error())
	since := time.Now()
	return since, errors.Join(err, c.crew.startAll(all))
}

// offsetsOf are offsets by partition, as the client takes them.
func offsetsOf(all map[laws.Place]int64) (to kadm.Offsets) {
	for at, offset := range all {
		to.AddOffset(at.Topic, at.Partition, offset, -1)
	}
	return to
}
