package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"dedupledger/integration/laws"
	"dedupledger/internal/devservices"
)

// truncate lets an unclean election cut one raw partition:
//
//	it has two replicas, both in sync; the follower is killed
//	what comes then is acknowledged by the leader alone (min.insync.replicas 1)
//	filters read, decide and commit some of it, and are killed
//	the leader is killed; the other comes back and is elected, without that
//
// The leader follows when it comes back. Nobody has a transaction open on the
// partition where it is cut: its end would be cut, too.
func truncate(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	if err := c.inSync(ctx); err != nil {
		return time.Now(), err
	}
	name := c.s.raw[rng.IntN(len(c.s.raw))]
	cut := &cutting{c: c, at: partitionOf(name, int32(rng.IntN(c.s.width(name))))}
	if err := cut.prepare(ctx); err != nil {
		return time.Now(), err
	}
	if err := hold(ctx, between(rng, 2*time.Second, 5*time.Second)); err != nil {
		return time.Now(), err
	}
	letGo := c.traffic.stop()
	all, err := c.crew.endAll(ctx, true)
	if err == nil {
		err = cut.elect(ctx)
	}
	if err == nil {
		err = cut.supersede(ctx)
	}
	letGo()
	if err != nil {
		return time.Now(), err
	}
	c.note("%s/%d, %d offsets behind %d", name, cut.at.Partition, cut.lost, cut.from)
	since := time.Now()
	if err := c.crew.startAll(all); err != nil {
		return since, err
	}
	c.watchFrom(ctx, since)
	return since, cut.tidy(ctx)
}

// cutting is one partition that is being cut.
type cutting struct {
	c        *campaign
	at       laws.Place
	replicas []int32 // as they were
	leader   int32
	heir     int32
	from     int64 // it is cut there
	lost     int64 // offsets behind that
	epoch    int32 // of the last leader before
}

func (t *cutting) broker(id int32) *devservices.Kafka { return t.c.s.kafka.Brokers[id-1] }

func (t *cutting) describe(ctx context.Context) (kadm.PartitionDetail, error) {
	topics, err := t.c.s.admin.ListTopics(kadm.WithAuthorizedOps(ctx), t.at.Topic) // past the client's cache
	if err != nil {
		return kadm.PartitionDetail{}, fmt.Errorf("asking for replicas: %w", err)
	}
	return topics[t.at.Topic].Partitions[t.at.Partition], nil
}

func (t *cutting) assign(ctx context.Context, replicas []int32) error {
	var to kadm.AlterPartitionAssignmentsReq
	to.Assign(t.at.Topic, t.at.Partition, replicas)
	moved, err := t.c.s.admin.AlterPartitionAssignments(ctx, to)
	if err := errors.Join(err, moved.Error()); err != nil {
		return fmt.Errorf("assigning replicas: %w", err)
	}
	return t.until(ctx, func(p kadm.PartitionDetail) bool {
		return len(p.Replicas) == len(replicas) && len(p.ISR) == len(replicas)
	})
}

func (t *cutting) until(ctx context.Context, is func(kadm.PartitionDetail) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverWithin, fmt.Errorf("the replicas of %s/%d do not become what they should", t.at.Topic, t.at.Partition))
	defer cancel()
	return until(ctx, func() (bool, error) {
		p, err := t.describe(ctx)
		return err == nil && is(p), nil // one without a leader has an error
	})
}

func (t *cutting) inSync(ctx context.Context, n string) error {
	altered, err := t.c.s.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "min.insync.replicas", Value: &n}}, t.at.Topic)
	if err != nil {
		return fmt.Errorf("setting a topic's min.insync.replicas: %w", err)
	}
	for _, a := range altered {
		err = errors.Join(err, a.Err)
	}
	return err
}

// prepare leaves the leader alone, where nothing is open on the partition.
func (t *cutting) prepare(ctx context.Context) error {
	if err := t.inSync(ctx, "1"); err != nil {
		return err
	}
	p, err := t.describe(ctx)
	if err != nil {
		return err
	}
	t.replicas, t.leader = p.Replicas, p.Leader
	t.heir = p.Replicas[slices.IndexFunc(p.Replicas, func(id int32) bool { return id != p.Leader })]
	if err := t.assign(ctx, []int32{t.leader, t.heir}); err != nil {
		return err
	}
	defer t.c.traffic.stop()()
	ends, err := t.c.resting(ctx, t.at.Topic)
	if err != nil {
		return err
	}
	t.from = ends[t.at]
	if err := t.broker(t.heir).Kill(); err != nil {
		return fmt.Errorf("killing a follower: %w", err)
	}
	return t.until(ctx, func(p kadm.PartitionDetail) bool { return len(p.ISR) == 1 && p.Leader == t.leader })
}

// elect ends the leader and makes the follower the leader of what it has. What
// the leader had was read by whoever follows raw.
func (t *cutting) elect(ctx context.Context) error {
	ends, err := t.c.resting(ctx, t.at.Topic)
	if err != nil {
		return err
	}
	t.lost = ends[t.at] - t.from
	p, err := t.describe(ctx)
	if err != nil {
		return err
	}
	t.epoch = p.LeaderEpoch
	if err := t.broker(t.leader).Kill(); err != nil {
		return fmt.Errorf("killing a leader: %w", err)
	}
	if err := t.broker(t.heir).Start(ctx); err != nil {
		return fmt.Errorf("starting a follower: %w", err)
	}
	which := kadm.TopicsSet{}
	which.Add(t.at.Topic, t.at.Partition)
	return t.until(ctx, func(p kadm.PartitionDetail) bool {
		if p.Leader == t.heir {
			return true
		}
		// Refused until the controller knows that the broker is back.
		_, _ = t.c.s.admin.ElectLeaders(ctx, kadm.ElectLiveReplica, which)
		return false
	})
}

// supersede begins the generation, once nothing of the filters is open any more.
func (t *cutting) supersede(ctx context.Context) error {
	border, err := t.c.restingOutputs(ctx)
	if err != nil {
		return err
	}
	id, err := t.c.topicID(ctx, t.at.Topic)
	if err != nil {
		return err
	}
	d, err := t.c.decided(ctx, id)
	if err != nil {
		return err
	}
	now := t.c.tail.gens.now(t.at.Topic, t.at.Partition)
	t.c.ids[now] = id
	t.c.gaps++
	t.c.destroyed = append(t.c.destroyed, destroyed{at: partitionOf(now, t.at.Partition), from: t.from, d: d[t.at.Partition]})
	t.c.tail.gens.begin(t.at, generation{from: t.from, above: t.epoch, border: border})
	return nil
}

// tidy lets the others follow again.
func (t *cutting) tidy(ctx context.Context) error {
	err := t.broker(t.leader).Start(ctx)
	if err == nil {
		err = t.assign(ctx, t.replicas)
	}
	return errors.Join(err, t.inSync(ctx, "2"), t.c.inSync(ctx))
}
