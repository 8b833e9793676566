package ledger

import (
	"time"

	"github.com/google/uuid"
)

// Claim is the incarnation of the session that works on a partition. Postgres's
// timeline is kept beside it in the row; both must still be there for a write.
type Claim uuid.UUID

// NewClaim makes a fresh one.
func NewClaim() Claim { return Claim(uuid.New()) }

// Outputs says where outputs end: topic name -> partition -> next offset.
// Under OutputCount stands how many partitions the topic had then, of the raw
// topic too: where counts agree outputs go by partition, else by key, and counts
// grow.
type Outputs map[string]map[int32]int64

// OutputCount is the place of a topic's number of partitions among its ends.
const OutputCount int32 = -1

// OutputsTaken stands under the raw topic where retention has taken outputs
// before the ends and a person has said to go on without them: that none is found
// there says nothing.
const OutputsTaken int32 = -2

// PositionRow is dedup_position of one raw partition.
type PositionRow struct {
	Group   string // consumer group that owns the partition
	Seq     int64
	D       Position // decided: set with each chunk, before its outputs
	W       Position // committed: W ≤ truth ≤ D
	Outputs Outputs  // where the outputs of W end
}

// PositionKey names a partition for the ledger and for people.
type PositionKey struct {
	Partition Partition
	Topic     string // the topic's present name
	Group     string // the asking session's consumer group
}

// Learned is one committed output, read back after Postgres lost commits.
// Verdict New makes a row of its own origin; the others become a sighting and
// a count.
type Learned struct {
	Verdict       Verdict
	Origin        Origin
	Account       string
	Key           Key      // Window unused; empty for an INVALID without a key
	Aliases       []string // further keys of a NEW, in Key's scope
	Matched       string   // as Result.Matched
	Reason        string
	Bytes         int64
	PayloadSHA256 [32]byte
	SourceService string
	FirstSeenAt   time.Time // of the row; zero for INVALID
	ExpiresAt     time.Time
}

// Lesson is one step of learning: outputs in order of their origins, then the
// position behind them. D becomes max(D, To), W becomes To, the row's seq
// max(seq, Seq)+1. Outputs below the row's D are not counted a second time.
type Lesson struct {
	Partition Partition
	Claim     Claim
	Learned   []Learned
	To        Position
	Seq       int64    // of the group offset's marker in the last lesson, else 0
	KnownSeq  int64    // of the row, as the session last wrote or read; a lower one is refused
	KnownD    Position // likewise
	Outputs   Outputs  // where the outputs of To end
	Gaps      []Range  // in which raw has, or had, records and no output was found
}
