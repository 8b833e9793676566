package processor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// Eight records of epoch 0 were committed, then a leader was elected that had
// six of them: offsets 6 and 7 hold other records of epoch 1 now, and none of
// them may be passed over.
// Fault card: F12.
func TestALogThatWasCutIsReadFromTheCut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a", "b", "c", "d", "e", "f")
	stop := b.start()
	b.read(6)
	stop()
	b.leave()
	all, err := b.adm.ListTopics(t.Context(), rawTopic)
	require.NoError(t, err)
	id := ledger.TopicID(all[rawTopic].ID)
	row := b.ledger.positions[ledger.Partition{Topic: id}]
	row.D, row.W = ledger.Position{Offset: 8}, ledger.Position{Offset: 8}
	b.setGroup(map[int32]int64{0: 0})                                // else the client itself finds the cut in the group's offset
	require.NoError(t, b.cluster.MoveTopicPartition(rawTopic, 0, 0)) // a new epoch
	b.produce(0, "g", "h", "i", "j")
	b.start()
	got := b.read(10)
	require.Equal(t, 1, got["clean.as2 g"])
	require.Equal(t, 1, got["clean.as2 h"])
	require.Equal(t, 1, got["clean.as2 i"])
	require.Equal(t, 1, got["clean.as2 j"])
}
