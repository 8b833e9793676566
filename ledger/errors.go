package ledger

import (
	"errors"
	"fmt"
)

var (
	// ErrClaimLost refuses a chunk, flush or lesson whose claim is not the
	// row's, or whose row has a lower D or seq than the session knows: another
	// session took the partition, or Postgres lost commits. The rule of
	// ARCHITECTURE §4 is applied again; nothing was written.
	ErrClaimLost = errors.New("ledger: the partition's claim, D or seq is not what this session left")
	// ErrUnavailable is any failure to get an answer: no connection, a broken
	// one, a timeout. Whether the ledger took the chunk is unknown.
	ErrUnavailable = errors.New("ledger: no answer")
	// ErrRejected is a data error (SQLSTATE class 22, 23502, 23514): the chunk
	// holds a record the tables cannot take. Halving finds it.
	ErrRejected = errors.New("ledger: the data was rejected")
	// ErrDenied says that a right on the tables was taken away while we run, and
	// names it. Nothing was written. It may be given back: it is waited for.
	ErrDenied = errors.New("ledger: a right is missing")
	// ErrOver says that the windows of all facts had ended before they could be
	// told, so that Redis was not asked.
	ErrOver = errors.New("ledger: the windows of all facts are over")
	// ErrRulesChanged says that other rules were made active since it was looked.
	// Nothing was written.
	ErrRulesChanged = errors.New("ledger: other rules are active by now")
	// ErrSchema says that the schema or a function is missing or of another
	// version, or that a right is missing at the start: time alone does not mend
	// it.
	ErrSchema = errors.New("ledger: schema or rights do not fit this program")
)

// OtherGroupError refuses a session of another consumer group.
type OtherGroupError struct {
	Partition Partition
	Owner     string
}

func (e *OtherGroupError) Error() string {
	return fmt.Sprintf("partition %s is filtered by group %q", e.Partition, e.Owner)
}
