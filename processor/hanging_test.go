package processor

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A transaction that never ends holds the group's offset. The partition waits,
// says what for and what to do, once, and goes on by itself when it has ended.
func TestAHangingTransactionIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var hangs atomic.Bool
	var asked atomic.Int32
	hangs.Store(true)
	b.cluster.ControlKey(int16(kmsg.OffsetFetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req, ok := r.(*kmsg.OffsetFetchRequest)
		if !ok || !hangs.Load() || !req.RequireStable {
			return nil, nil, false
		}
		asked.Add(1)
		return unstable(req), nil, true
	})
	var log lines
	b.produce(0, "a")
	b.start(func(c *Config) {
		c.overdue = time.Nanosecond
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	require.Eventually(t, func() bool { return asked.Load() > 20 }, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, partitions, log.count("a partition waits for a transaction that should have ended"), "each once, not at each look")
	require.Equal(t, partitions, log.count("dedup topics hanging --end"))
	hangs.Store(false)
	require.Equal(t, map[string]int{"clean.as2 a": 1}, b.read(1))
}

// A transaction of this producer stays open in the outputs although it was
// committed. The next one would end it in its own way, so none is begun, neither
// by a session that runs nor by one that starts, until it has ended.
func TestNothingIsBegunBehindAHangingTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var hangs atomic.Bool
	var produced atomic.Int32
	var ids []int64 // of the sessions' producers; written before hangs
	b.cluster.ControlKey(int16(kmsg.DescribeProducers), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req, ok := r.(*kmsg.DescribeProducersRequest)
		if !ok || !hangs.Load() {
			return nil, nil, false
		}
		return openEverywhere(req, ids), nil, true
	})
	b.cluster.ControlKey(int16(kmsg.TxnOffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if hangs.Load() {
			produced.Add(1)
		}
		return nil, nil, false
	})
	var log lines
	settings := func(c *Config) {
		c.overdue = time.Nanosecond
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	}
	stop := b.start(settings)
	b.produce(0, "a")
	require.Equal(t, map[string]int{"clean.as2 a": 1}, b.read(1))
	ids = b.producerIDs()
	hangs.Store(true)
	b.produce(0, "b")
	told := func(n int) func() bool {
		return func() bool { return log.count("a partition waits for a transaction that should have ended") >= n }
	}
	require.Eventually(t, told(1), 20*time.Second, 5*time.Millisecond, "while it runs")
	before := log.count("a partition waits for a transaction that should have ended")
	stop()
	b.start(settings)
	require.Eventually(t, told(before+partitions), 20*time.Second, 5*time.Millisecond, "at the start")
	require.Zero(t, produced.Load(), "transactions behind the one that hangs")
	hangs.Store(false)
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1}, b.read(2))
}

func (b *bundle) producerIDs() (ids []int64) {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...))
	require.NoError(b.t, err)
	defer cl.Close()
	all, err := kadm.NewClient(cl).ListTransactions(b.t.Context(), nil, nil)
	require.NoError(b.t, err)
	for _, t := range all {
		ids = append(ids, t.ProducerID)
	}
	require.NotEmpty(b.t, ids)
	return ids
}

// openEverywhere says that each of these producers has a transaction open.
func openEverywhere(req *kmsg.DescribeProducersRequest, ids []int64) kmsg.Response {
	resp, _ := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewDescribeProducersResponseTopic()
		rt.Topic = t.Topic
		for _, n := range t.Partitions {
			rp := kmsg.NewDescribeProducersResponseTopicPartition()
			rp.Partition = n
			for _, id := range ids {
				a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
				a.ProducerID, a.CurrentTxnStartOffset = id, 0
				rp.ActiveProducers = append(rp.ActiveProducers, a)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func unstable(req *kmsg.OffsetFetchRequest) kmsg.Response {
	resp, _ := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	for _, g := range req.Groups {
		rg := kmsg.NewOffsetFetchResponseGroup()
		rg.Group = g.Group
		for _, t := range g.Topics {
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
				rp.Partition, rp.Offset, rp.ErrorCode = p, -1, kerr.UnstableOffsetCommit.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			rg.Topics = append(rg.Topics, rt)
		}
		resp.Groups = append(resp.Groups, rg)
	}
	return resp
}

func TestAnOpenTransactionIsOverdueBehindItsTimeout(t *testing.T) {
	t.Parallel()
	var p part
	at := time.Now()
	look := func(after time.Duration) bool {
		_, tell := p.awaitStable(at.Add(after), 35*time.Second)
		require.Equal(t, pending, p.phase)
		return tell
	}
	require.False(t, look(0))
	require.False(t, look(35*time.Second))
	require.Empty(t, p.why)
	require.True(t, look(36*time.Second))
	require.Equal(t, waitsHanging, p.reason)
	require.Contains(t, p.why, "36s")
	require.False(t, look(37*time.Second), "told already")
	require.True(t, look(97*time.Second), "again each minute")
	p.stable()
	require.Empty(t, p.why)
	require.False(t, look(100*time.Second), "another one has its time")
}
