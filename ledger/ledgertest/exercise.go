package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// Ledger is what is exercised: the registration and the positions, the hot
// tier's way in, and the accounts.
type Ledger interface {
	Register(ctx context.Context, chunk *ledger.Chunk) (*ledger.Answer, error)
	Claim(ctx context.Context, key ledger.PositionKey, claim ledger.Claim) (ledger.PositionRow, bool, error)
	OpenPosition(ctx context.Context, key ledger.PositionKey, claim ledger.Claim, start ledger.Position, out ledger.Outputs) (bool, error)
	Confirm(facts []ledger.Fact, now ledger.Clock)
	Accounts(ctx context.Context) (Accounts, error)
}

// Accounts is the number of records by account (tenant:flow) and verdict, over
// all hours.
type Accounts map[string]map[ledger.Verdict]int64

// EnvSeed names the variable that repeats a run.
const EnvSeed = "DEDUP_TEST_SEED"

// Load is how much a ledger is exercised.
type Load struct {
	Sequential int // registrations of the single session
	Racing     int // registrations of all racing writers together
	Writers    int
	Seed       uint64
}

// DefaultLoad is enough to meet every kind of record and operation often. Its
// seed is the environment's, or a new one.
func DefaultLoad() Load {
	return Load{Sequential: 20_000, Racing: 40_000, Writers: 4, Seed: seed()}
}

func seed() uint64 {
	if s, err := strconv.ParseUint(os.Getenv(EnvSeed), 10, 64); err == nil {
		return s
	}
	return uint64(time.Now().UnixNano())
}

// Exercise runs the suite against what newLedger makes: an empty ledger.
func Exercise(t *testing.T, newLedger func(t *testing.T) Ledger) {
	t.Helper()
	DefaultLoad().Exercise(t, newLedger)
}

// Exercise is the suite at this load.
func (l Load) Exercise(t *testing.T, newLedger func(t *testing.T) Ledger) {
	t.Helper()
	t.Logf("%s=%d", EnvSeed, l.Seed)
	start := time.Now()
	n, err := l.Check(t.Context(), newLedger(t))
	require.NoError(t, err, "%s=%d", EnvSeed, l.Seed)
	t.Logf("%d registrations in %s", n, time.Since(start).Round(time.Millisecond))
}

// Check is the suite without a test: the number of registrations made and what
// was wrong. A negative control requires the error.
func (l Load) Check(ctx context.Context, under Ledger) (int, error) {
	h := newHistory()
	if err := l.feedByAPI(ctx, under, h); err != nil {
		return 0, err
	}
	n, err := l.sequential(ctx, under, h)
	if err != nil {
		return n, errors.Join(err, h.err())
	}
	raced, err := l.race(ctx, under, h)
	n += raced
	if err != nil {
		return n, errors.Join(err, h.err())
	}
	h.finish()
	accounts, err := under.Accounts(ctx)
	if err != nil {
		return n, fmt.Errorf("read the accounts: %w", err)
	}
	h.compareAccounts(accounts)
	return n, h.err()
}

// rng is one stream of the seed; each phase and writer has its own, so that what
// one draws does not shift the others.
func (l Load) rng(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(l.Seed, stream))
}
