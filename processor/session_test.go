package processor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/ledger"
)

// Whatever the client has put into the request, it is left with the batch.
func TestStampCommitsTheBatch(t *testing.T) {
	t.Parallel()
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	foreign := kmsg.NewTxnOffsetCommitRequestTopic()
	foreign.Topic = "sought, not consumed"
	foreign.Partitions = append(foreign.Partitions, kmsg.NewTxnOffsetCommitRequestTopicPartition())
	req.Topics = append(req.Topics, foreign)
	id := ledger.TopicID{7}
	stamp(req, map[place]mark{
		{rawTopic, 3}: {topic: id, end: ledger.Position{Epoch: 2, Offset: 40}, metadata: "m"},
	})
	require.Len(t, req.Topics, 1)
	require.Equal(t, rawTopic, req.Topics[0].Topic)
	require.Equal(t, [16]byte(id), req.Topics[0].TopicID)
	require.Len(t, req.Topics[0].Partitions, 1)
	p := req.Topics[0].Partitions[0]
	require.Equal(t, [3]int64{3, 40, 2}, [3]int64{int64(p.Partition), p.Offset, int64(p.LeaderEpoch)})
	require.Equal(t, "m", *p.Metadata)
}

// The client takes an offset that another tool set for its own commit, and has
// nothing to commit where a batch ends there. Outputs without offsets would not
// be refused to a session that was replaced.
func TestABatchThatEndsAtAnotherToolsOffsetIsCommitted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a", "b", "a")
	stop := b.start()
	b.read(3)
	stop()
	b.leave()
	b.produce(0, "c", "d")
	var os kadm.Offsets
	os.AddOffset(rawTopic, 0, 5, 0)
	rs, err := b.adm.CommitOffsets(t.Context(), "dedup", os)
	require.NoError(t, err)
	require.NoError(t, rs.Error())
	stop = b.start()
	b.read(5)
	stop()
	got, err := b.adm.FetchOffsets(t.Context(), "dedup")
	require.NoError(t, err)
	o, ok := got.Lookup(rawTopic, 0)
	require.True(t, ok)
	require.Equal(t, int64(5), o.At)
	require.Contains(t, o.Metadata, "dd1:")
}

func assignment(t *testing.T, c *client, ps ...int32) {
	t.Helper()
	a := kmsg.NewConsumerMemberAssignment()
	at := kmsg.NewConsumerMemberAssignmentTopic()
	at.Topic, at.Partitions = rawTopic, ps
	a.Topics = append(a.Topics, at)
	m, err := observed{kgo.CooperativeStickyBalancer(), c}.ParseSyncAssignment(a.AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, map[string][]int32{rawTopic: ps}, m)
}

// The session type keeps a second revoke before the next End from us. Holding on
// to that partition, the session would claim it back from its new owner.
func TestAnAssignmentTellsAMissedRevoke(t *testing.T) {
	t.Parallel()
	cl, err := kgo.NewClient()
	require.NoError(t, err)
	defer cl.Close()
	c := &client{}
	assignment(t, c, 0, 1, 2)
	c.onAssigned(t.Context(), cl, map[string][]int32{rawTopic: {0, 1, 2}})
	c.onRevoked(t.Context(), cl, map[string][]int32{rawTopic: {0}})
	events, dirty, _ := c.take()
	require.Len(t, events, 4)
	require.Equal(t, event{place{rawTopic, 0}, false}, events[3])
	require.True(t, dirty)

	assignment(t, c, 1) // 2 is gone, and onRevoked was not called
	c.onAssigned(t.Context(), cl, nil)
	events, dirty, _ = c.take()
	require.Equal(t, []event{{place{rawTopic, 2}, false}}, events)
	require.False(t, dirty)

	assignment(t, c, 1, 2)
	c.onAssigned(t.Context(), cl, map[string][]int32{rawTopic: {2}})
	events, _, _ = c.take()
	require.Equal(t, []event{{place{rawTopic, 2}, true}}, events)
}

// A rebalance that takes nothing away leaves the batch in hand alone; the end of
// the membership does not.
func TestOnlyALossCancelsTheBatch(t *testing.T) {
	t.Parallel()
	c := &client{}
	ctx, cancel := c.during(t.Context())
	defer cancel()
	c.onRevoked(t.Context(), nil, nil)
	_, dirty, _ := c.take()
	require.NoError(t, ctx.Err())
	require.False(t, dirty)
	c.onLost(t.Context(), nil, nil)
	_, dirty, _ = c.take()
	require.Error(t, ctx.Err())
	require.True(t, dirty)
}
