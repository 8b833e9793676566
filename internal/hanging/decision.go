package hanging

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Decision is what the coordinator wrote about a transaction in __transaction_state.
type Decision uint8

// Decisions.
const (
	Unknown   Decision = iota // not told any more, or told both ways
	Committed                 // PrepareCommit or CompleteCommit
	Aborted                   // PrepareAbort, CompleteAbort or PrepareEpochFence
)

func (d Decision) String() string { return [...]string{"unknown", "committed", "aborted"}[d] }

// decisionOf reads what was decided on the transactions that a producer had in
// one epoch, from its transactional id's states in the order they were written.
// With transactions of KIP-890 an epoch is one transaction, and its decision
// carries the next epoch. Before that an epoch is many: they count only where all
// were decided alike.
func decisionOf(states []kmsg.TxnMetadataValue, producer int64, epoch int16) Decision {
	var all Decision
	open := false
	for i := range states {
		v := &states[i]
		if v.State == kmsg.TransactionStateOngoing {
			open = v.ProducerID == producer && v.ProducerEpoch == epoch
			continue
		}
		d := decided(v.State)
		if !open || d == Unknown {
			continue
		}
		if all != Unknown && all != d {
			return Unknown
		}
		all, open = d, false
	}
	return all
}

func decided(s kmsg.TransactionState) Decision {
	switch s {
	case kmsg.TransactionStatePrepareCommit, kmsg.TransactionStateCompleteCommit:
		return Committed
	case kmsg.TransactionStatePrepareAbort, kmsg.TransactionStateCompleteAbort, kmsg.TransactionStatePrepareEpochFence:
		return Aborted
	default:
		return Unknown
	}
}

// stateOf reads a record of __transaction_state about the transactional id; ok
// is false for another's and for a tombstone.
func stateOf(id string, key, value []byte) (v kmsg.TxnMetadataValue, ok bool, err error) {
	k := kmsg.NewTxnMetadataKey()
	if err := k.ReadFrom(key); err != nil || k.TransactionalID != id || value == nil {
		return v, false, nil //nolint:nilerr // a key of a later version is not ours to read
	}
	if err := v.ReadFrom(value); err != nil {
		return v, false, fmt.Errorf("reading a state of transactional id %s: %w", id, err)
	}
	return v, true, nil
}
