package hanging

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func state(producer int64, epoch int16, s kmsg.TransactionState) kmsg.TxnMetadataValue {
	v := kmsg.NewTxnMetadataValue()
	v.ProducerID, v.ProducerEpoch, v.State = producer, epoch, s
	return v
}

// As Kafka 4.3.1 wrote them around a clean stop: epoch 30 was committed without
// its markers, and the successor took epoch 32.
func TestDecisionIsWhatFollowsTheLastOpenState(t *testing.T) {
	t.Parallel()
	states := []kmsg.TxnMetadataValue{
		state(1, 29, kmsg.TransactionStateOngoing),
		state(1, 30, kmsg.TransactionStatePrepareAbort),
		state(1, 30, kmsg.TransactionStateCompleteAbort),
		state(1, 30, kmsg.TransactionStateOngoing),
		state(1, 30, kmsg.TransactionStateOngoing),
		state(1, 31, kmsg.TransactionStatePrepareCommit),
		state(1, 31, kmsg.TransactionStateCompleteCommit),
		state(1, 32, kmsg.TransactionStateEmpty),
	}
	require.Equal(t, Committed, decisionOf(states, 1, 30))
	require.Equal(t, Aborted, decisionOf(states, 1, 29))
	require.Equal(t, Unknown, decisionOf(states, 1, 31), "never opened")
	require.Equal(t, Unknown, decisionOf(states, 2, 30), "another producer")
	require.Equal(t, Unknown, decisionOf(states[:5], 1, 30), "not decided yet")
	require.Equal(t, Unknown, decisionOf(states[6:], 1, 30), "compaction has taken it")
}

// Before KIP-890 an epoch has many transactions.
func TestDecisionOfOneEpochMustBeOne(t *testing.T) {
	t.Parallel()
	states := []kmsg.TxnMetadataValue{
		state(1, 3, kmsg.TransactionStateOngoing), state(1, 3, kmsg.TransactionStateCompleteCommit),
		state(1, 3, kmsg.TransactionStateOngoing), state(1, 3, kmsg.TransactionStateCompleteCommit),
	}
	require.Equal(t, Committed, decisionOf(states, 1, 3))
	states = append(states, state(1, 3, kmsg.TransactionStateOngoing), state(1, 3, kmsg.TransactionStateCompleteAbort))
	require.Equal(t, Unknown, decisionOf(states, 1, 3))
	fenced := []kmsg.TxnMetadataValue{state(1, 3, kmsg.TransactionStateOngoing), state(1, 4, kmsg.TransactionStatePrepareEpochFence)}
	require.Equal(t, Aborted, decisionOf(fenced, 1, 3))
}

func TestStateOfReadsItsOwnIDOnly(t *testing.T) {
	t.Parallel()
	k, v := kmsg.NewTxnMetadataKey(), state(7, 2, kmsg.TransactionStateOngoing)
	k.TransactionalID, v.Version = "dedup-0-1", 1
	got, ok, err := stateOf("dedup-0-1", k.AppendTo(nil), v.AppendTo(nil))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(7), got.ProducerID)
	_, ok, err = stateOf("dedup-0-0", k.AppendTo(nil), v.AppendTo(nil))
	require.NoError(t, err)
	require.False(t, ok)
	_, ok, err = stateOf("dedup-0-1", k.AppendTo(nil), nil)
	require.NoError(t, err)
	require.False(t, ok, "a tombstone")
	_, _, err = stateOf("dedup-0-1", k.AppendTo(nil), []byte{0})
	require.Error(t, err)
}

func TestOursAreTheGroupsOwnIDs(t *testing.T) {
	t.Parallel()
	for id, is := range map[string]bool{
		"dedup-0-1": true, "dedup-12-0": true, "dedup-x-1": false, "dedup-0": false, "dedup-0-": false, "other-0-1": false, "dedup-b-0-1": false, "": false,
	} {
		require.Equal(t, is, ours("dedup", id), id)
	}
}

func TestOnlyWhatItsCoordinatorHasDoneWithHangs(t *testing.T) {
	t.Parallel()
	lost, alive, gone := openAt{"clean", 0, 1, 30, 522}, openAt{"clean", 1, 2, 8, 90}, openAt{"clean", 2, 1, 30, 7}
	ids := map[int64]string{1: "dedup-0-0", 2: "dedup-0-1"}
	told := kadm.DescribedTransactions{
		"dedup-0-0": {TxnID: "dedup-0-0", ProducerID: 1, ProducerEpoch: 32, State: "Empty"},
		"dedup-0-1": {TxnID: "dedup-0-1", ProducerID: 2, ProducerEpoch: 8, State: "Ongoing", Topics: kadm.TopicsSet{"clean": {1: {}}}},
	}
	all := hangs(map[openAt]int32{lost: 12, alive: 14, gone: 12}, map[openAt]int32{lost: 12, alive: 14}, ids, told)
	require.Equal(t, []Transaction{{ID: "dedup-0-0", Producer: 1, Epoch: 30, Places: []Place{{Topic: "clean", From: 522, coordinator: 12}}}}, all)
}
