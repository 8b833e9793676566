package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// This file has what other tools do to the filter's group, topics and outputs.

// vacate takes the filter's static members out of the group, as an operator
// does before a reset: a process that has ended keeps its place for the session
// timeout, and offsets of a group that is not empty cannot be set.
func (b *bundle) vacate(t *testing.T) {
	t.Helper()
	until(t, "the group is empty", func(ctx context.Context) (bool, error) {
		d, err := b.admin.DescribeGroups(ctx, b.group)
		if err != nil {
			return false, err
		}
		g := d[b.group]
		if g.Err != nil || len(g.Members) == 0 {
			return g.Err == nil && (g.State == "Empty" || g.State == "Dead"), g.Err
		}
		var leave []string
		for _, m := range g.Members {
			if m.InstanceID != nil {
				leave = append(leave, *m.InstanceID)
			}
		}
		_, err = b.admin.LeaveGroup(ctx, kadm.LeaveGroup(b.group).InstanceIDs(leave...))
		return false, err
	})
}

// setOffsets sets the group's offsets of all raw partitions, as kafka-consumer-groups
// --reset-offsets does: without metadata. at is told the offset there was.
func (b *bundle) setOffsets(t *testing.T, at func(was int64) int64) {
	t.Helper()
	was, err := b.admin.FetchOffsets(t.Context(), b.group)
	require.NoError(t, err)
	require.NotEmpty(t, was)
	var to kadm.Offsets
	was.Each(func(o kadm.OffsetResponse) {
		require.NoError(t, o.Err)
		require.True(t, strings.HasPrefix(o.Metadata, "dd1:"), "the marker of %s/%d: %q", o.Topic, o.Partition, o.Metadata)
		to.AddOffset(o.Topic, o.Partition, at(o.At), -1)
	})
	set, err := b.admin.CommitOffsets(t.Context(), b.group, to)
	require.NoError(t, errors.Join(err, set.Error()))
}

// deleteOffsets removes the group's offsets, as kafka-consumer-groups
// --delete-offsets does.
func (b *bundle) deleteOffsets(t *testing.T) {
	t.Helper()
	set := kadm.TopicsSet{}
	for _, name := range b.raw {
		for p := range b.partitions {
			set.Add(name, int32(p))
		}
	}
	gone, err := b.admin.DeleteOffsets(t.Context(), b.group, set)
	require.NoError(t, errors.Join(err, gone.Error()))
}

// deleteRecords moves a log's start.
func (b *bundle) deleteRecords(t *testing.T, topic string, partition int32, before int64) {
	t.Helper()
	var to kadm.Offsets
	to.AddOffset(topic, partition, before, -1)
	moved, err := b.admin.DeleteRecords(t.Context(), to)
	require.NoError(t, errors.Join(err, moved.Error()))
}

// positionsNow are the rows of dedup_position.
func (b *bundle) positionsNow(ctx context.Context) (map[place]position, error) {
	o := laws.NewObservation()
	err := b.observePositions(ctx, o)
	return o.Positions, err
}

// awaitHandled waits until what was sent last to each raw partition has its
// output. Outputs of a partition come in its order, so all before it has been
// decided too, and the laws can be judged at once: what is missing then is lost.
func (b *bundle) awaitHandled(t *testing.T) {
	t.Helper()
	last := map[place]place{}
	for _, s := range b.books() {
		at := place{Topic: s.Place.Topic, Partition: s.Place.Partition}
		if p, ok := last[at]; !ok || p.Offset < s.Place.Offset {
			last[at] = s.Place
		}
	}
	k := b.track(t)
	defer k.client.Close()
	k.await(t, func() (missing int, ok bool) {
		for _, p := range last {
			if k.seen[p] == 0 {
				missing++
			}
		}
		return missing, missing == 0
	})
}

// checkHandled is check that does not wait for records that were passed over.
func (b *bundle) checkHandled(t *testing.T) {
	t.Helper()
	b.awaitHandled(t)
	o, err := b.observe(t.Context())
	require.NoError(t, err)
	require.NoError(t, o.Judge())
}

// in puts messages into a partition.
func in(partition int, messages ...message) []message {
	moved := append([]message(nil), messages...)
	for i := range moved {
		moved[i].Partition = int32(partition)
	}
	return moved
}

// everywhere is traffic for each partition: n messages of a flow of its own, each
// with a resend, a changed resend of the first and a broken one.
func (b *bundle) everywhere(name string, n int) (messages []message) {
	for p := range b.partitions {
		scope := fmt.Sprintf("t%d:edifact", p)
		var own []message
		for i := range n {
			m := order(scope, fmt.Sprintf("%s%d", name, i), 5)
			own = append(own, m, m)
		}
		own = append(own, order(scope, name+"0", 6), cutOrder(scope, name+"cut"))
		messages = append(messages, in(p, own...)...)
	}
	return messages
}

// sumOf is a query's one number.
func (b *bundle) sumOf(t *testing.T, q string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, b.query(t.Context(), q, func(r pgx.Rows) error { return r.Scan(&n) }, args...))
	return n
}

// openTransaction is a transaction of another producer, with a record in it,
// left open.
func (b *bundle) openTransaction(t *testing.T, topic string, partition int32) (end func(kgo.TransactionEndTry)) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID("stranger-"+b.id), kgo.TransactionTimeout(10*time.Minute),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.BeginTransaction())
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: []byte("open")}).FirstErr())
	return func(how kgo.TransactionEndTry) {
		require.NoError(t, c.EndTransaction(context.WithoutCancel(t.Context()), how))
	}
}
