package processor

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
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
