package crash

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// refusals are errors with which a broker answers, beside a connection that
// breaks: passing ones, and those after which a session must be rebuilt, its
// transaction aborted or its position read anew. What is answered with
// REQUEST_TIMED_OUT is done all the same.
func refusals(key kmsg.Key) []*kerr.Error {
	switch key { //nolint:exhaustive // the others only break
	case kmsg.Produce:
		return []*kerr.Error{kerr.NotEnoughReplicas, kerr.RequestTimedOut, kerr.NotLeaderForPartition, kerr.UnknownServerError, kerr.InvalidProducerEpoch}
	case kmsg.Fetch:
		return []*kerr.Error{kerr.NotLeaderForPartition, kerr.OffsetOutOfRange}
	case kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch:
		return []*kerr.Error{kerr.NotLeaderForPartition}
	case kmsg.OffsetFetch:
		return []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.UnstableOffsetCommit}
	case kmsg.JoinGroup, kmsg.SyncGroup:
		return []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.UnknownMemberID}
	case kmsg.Heartbeat:
		return []*kerr.Error{kerr.RebalanceInProgress, kerr.UnknownMemberID}
	case kmsg.InitProducerID:
		return []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.ConcurrentTransactions}
	case kmsg.TxnOffsetCommit:
		return []*kerr.Error{kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.CoordinatorLoadInProgress}
	case kmsg.EndTxn:
		return []*kerr.Error{kerr.UnknownServerError, kerr.CoordinatorNotAvailable, kerr.ConcurrentTransactions, kerr.InvalidTxnState}
	}
	return nil
}

// refuse makes the broker answer the next such request with an error, half of the
// times.
func (l *lane) refuse(key kmsg.Key) bool {
	errs := refusals(key)
	if len(errs) == 0 || l.chance(2) {
		return false
	}
	top := key == kmsg.EndTxn || key == kmsg.InitProducerID || key == kmsg.JoinGroup || key == kmsg.SyncGroup || key == kmsg.Heartbeat
	l.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, TopLevel: top, Err: errs[l.number(len(errs))], Count: 1})
	return true
}
