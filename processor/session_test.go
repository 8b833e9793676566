package processor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
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
