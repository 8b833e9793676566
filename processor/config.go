package processor

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
	"dedupledger/topics/acl"
)

// Registrar decides: it registers chunks in PostgreSQL.
type Registrar interface {
	// Register takes a chunk as one statement. Errors are ledger.ErrClaimLost,
	// ErrUnavailable, ErrDenied, ErrRejected or ErrSchema.
	Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error)
	// Reject says that an output topic refused a registered record: its row is
	// closed and its account becomes INVALID.
	Reject(ctx context.Context, claim ledger.Claim, r *ledger.Registration, reason string) error
}

// Positions keeps dedup_position (ARCHITECTURE §4).
type Positions interface {
	Claim(ctx context.Context, k ledger.PositionKey, c ledger.Claim) (ledger.PositionRow, bool, error)
	OpenPosition(ctx context.Context, k ledger.PositionKey, c ledger.Claim, start ledger.Position, out ledger.Outputs) (bool, error)
	Flush(ctx context.Context, as []ledger.Advance) error
	Learn(ctx context.Context, l *ledger.Lesson) (seq int64, d ledger.Position, err error)
	// RecordGap writes a gap down; fresh is false where it is known already. One
	// of the log start takes W and D behind it.
	RecordGap(ctx context.Context, a *ledger.Advance, g *ledger.Gap) (fresh bool, err error)
	// Former lists positions of topics of this name that are gone, and not retired.
	Former(ctx context.Context, k ledger.PositionKey) ([]ledger.Standing, error)
	// Hold tells the row why the partition is not consumed; kept is false where the
	// row has another claim by now.
	Hold(ctx context.Context, p ledger.Partition, c ledger.Claim, reason, why string) (kept bool, err error)
}

// Rights are the role's on the ledger's tables.
type Rights interface {
	// Denied is a ledger.ErrDenied that names what is missing, or nil.
	Denied(ctx context.Context) error
}

// Memory takes facts after the commit; it never blocks and never fails.
type Memory interface {
	Confirm(facts []ledger.Fact, now ledger.Clock)
}

// Keyer finds a record's key by the flow's rule.
type Keyer interface {
	// Key returns the key in its ledger scope, or a closed code, and how the record
	// is dealt with.
	Key(s topics.Scope, value []byte, header func(name string, back int) ([]byte, bool)) ledger.Keyed
	// Observes reports whether a record of a scope whose key is not looked for goes
	// to clean, marked.
	Observes(s topics.Scope) bool
	// LedgerScope is the key space of a key that is known already.
	LedgerScope(s topics.Scope, key string) string
}

// Ledger is all of the ledger that the processor uses.
type Ledger struct {
	ID        uuid.UUID
	Registrar Registrar
	Positions Positions
	Rights    Rights
	Memory    Memory
}

// Config is what a processor needs. Durations and sizes as in docs/configuration.md.
type Config struct {
	faultPoints // nothing, but in a program that is built to be broken

	Brokers     []string
	Group       string
	Slot        int // of this process, where Slots is nil
	Sessions    int
	Static      bool          // static membership (KIP-345)
	Rebalance   time.Duration // below Transaction
	Transaction time.Duration
	Session     time.Duration
	FetchMax    int32
	Compression string

	MaxRecord     int64 // bytes, uncompressed
	PayloadCopies int64 // repeats of a row, and changed ones, that carry their payload
	BatchRecords  int
	ChunkRecords  int
	BatchWait     time.Duration
	StallExit     time.Duration
	ShutdownGrace time.Duration
	MetricScopes  int // tenant/flow pairs of dedup_scope_messages_total; 0: no such metric

	Principal acl.Principal // who is to be granted what is missing

	Router   *topics.Router
	Input    topics.Input
	Ledger   Ledger
	Keyer    Keyer
	Slots    Slots           // numbers this process; nil: Slot does
	Leaving  <-chan struct{} // closed when the next stop is for good; nil: never
	Log      *slog.Logger
	Registry prometheus.Registerer

	// overdue is after how long an open transaction is told that holds the group's
	// offset; 0: when its timeout has passed. For tests.
	overdue time.Duration

	// ClientOptions are added to every Kafka client (metrics hooks, tests).
	ClientOptions []kgo.Opt
}
