package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tierStub is both tiers: what it is asked it records, and a Remember waits for
// a token of gate where there is one.
type tierStub struct {
	gate chan struct{}

	mu        sync.Mutex
	batches   [][]ledger.Fact
	witnesses []ledger.Witness
	counted   []ledger.Witness
	err       error
}

func (s *tierStub) Register(context.Context, *ledger.Chunk) (*ledger.Answer, error) {
	return &ledger.Answer{Seqs: []int64{7}}, nil
}

func (s *tierStub) Remember(ctx context.Context, _ ledger.Clock, facts []ledger.Fact) ([]ledger.Witness, error) {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, facts)
	return s.witnesses, s.err
}

func (s *tierStub) CountWitnesses(_ context.Context, w []ledger.Witness) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = append(s.counted, w...)
	return nil
}

func batch(n int64) []ledger.Fact {
	return []ledger.Fact{{Scope: "t:f", Key: "secret-key", Origin: ledger.Origin{Gate: ledger.GateKafka, Offset: n}}}
}

func (s *tierStub) offsets() (got []int64) {
	for _, b := range s.batches {
		got = append(got, b[0].Origin.Offset)
	}
	return got
}

func TestTiersRegisterAsksColdOnly(t *testing.T) {
	t.Parallel()
	var seen []string
	cold := &tierStub{}
	tiers := ledger.NewTiers(ledger.TiersConfig{
		Cold:    cold,
		Observe: func(tier string, _ time.Duration, err error) { seen = append(seen, tier); require.NoError(t, err) },
	})
	answer, err := tiers.Register(t.Context(), &ledger.Chunk{})
	require.NoError(t, err)
	require.Equal(t, []int64{7}, answer.Seqs)
	tiers.Confirm(batch(1), ledger.Clock{}) // no hot tier: nothing to do
	require.NoError(t, tiers.Close(t.Context()))
	require.Equal(t, []string{ledger.TierCold}, seen)
	require.Empty(t, cold.batches)
}

func TestTiersCloseDrains(t *testing.T) {
	t.Parallel()
	s := &tierStub{}
	tiers := ledger.NewTiers(ledger.TiersConfig{Cold: s, Hot: s})
	for n := range int64(10) {
		tiers.Confirm(batch(n), ledger.Clock{})
	}
	require.NoError(t, tiers.Close(t.Context()))
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, s.offsets())
	require.Equal(t, int64(10), tiers.Stats().Remembered)
	tiers.Confirm(batch(11), ledger.Clock{})
	require.NoError(t, tiers.Close(t.Context()), "a second Close")
	require.Equal(t, int64(1), tiers.Stats().Dropped)
}

// TestTiersTellWhatIsOver: facts whose windows ended on the way are no failure, and
// are not remembered.
func TestTiersTellWhatIsOver(t *testing.T) {
	t.Parallel()
	s := &tierStub{err: ledger.ErrOver}
	var seen []string
	tiers := ledger.NewTiers(ledger.TiersConfig{Cold: s, Hot: s, Observe: func(tier string, _ time.Duration, _ error) { seen = append(seen, tier) }})
	tiers.Confirm(batch(1), ledger.Clock{})
	require.NoError(t, tiers.Close(t.Context()))
	stats := tiers.Stats()
	require.Equal(t, []int64{1, 0, 0}, []int64{stats.Over, stats.Remembered, stats.Failed})
	require.Empty(t, seen, "no call was made")
}

// Redis hangs: Confirm returns at once and the oldest batches go.
func TestTiersDropTheOldest(t *testing.T) {
	t.Parallel()
	s := &tierStub{gate: make(chan struct{})}
	tiers := ledger.NewTiers(ledger.TiersConfig{Cold: s, Hot: s, Queue: 3})
	tiers.Confirm(batch(0), ledger.Clock{})
	s.gate <- struct{}{} // the worker had it in hand
	for n := int64(1); n <= 5; n++ {
		tiers.Confirm(batch(n), ledger.Clock{})
	}
	close(s.gate)
	require.NoError(t, tiers.Close(t.Context()))
	got := s.offsets()
	require.Equal(t, int64(0), got[0])
	require.Equal(t, []int64{3, 4, 5}, got[len(got)-3:])
	stats := tiers.Stats()
	require.Equal(t, int64(6), stats.Dropped+stats.Remembered)
	require.GreaterOrEqual(t, stats.Dropped, int64(1))
}

func TestTiersCloseGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	s := &tierStub{gate: make(chan struct{})}
	tiers := ledger.NewTiers(ledger.TiersConfig{Cold: s, Hot: s})
	for n := range int64(4) {
		tiers.Confirm(batch(n), ledger.Clock{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tiers.Close(ctx), context.Canceled)
	stats := tiers.Stats()
	require.Equal(t, int64(4), stats.Dropped+stats.Failed)
}

func TestTiersCountErrors(t *testing.T) {
	t.Parallel()
	s := &tierStub{err: errors.New("down")}
	tiers := ledger.NewTiers(ledger.TiersConfig{Cold: s, Hot: s})
	tiers.Confirm(batch(1), ledger.Clock{})
	require.NoError(t, tiers.Close(t.Context()))
	require.Equal(t, int64(1), tiers.Stats().Failed)
}

func TestTiersReportWitnesses(t *testing.T) {
	t.Parallel()
	f := batch(8804)[0]
	f.Origin.Topic, f.Origin.Partition = ledger.TopicID{1}, 3
	s := &tierStub{witnesses: []ledger.Witness{{Fact: f}, {Fact: f}}}
	var out bytes.Buffer
	tiers := ledger.NewTiers(ledger.TiersConfig{
		Cold: s, Hot: s, Witnesses: s, Log: slog.New(slog.NewJSONHandler(&out, nil)),
	})
	tiers.Confirm(batch(1), ledger.Clock{})
	require.NoError(t, tiers.Close(t.Context()))
	require.Len(t, s.counted, 2)
	require.Equal(t, map[ledger.Gate]int64{ledger.GateKafka: 2}, tiers.Stats().Witnesses)
	require.Contains(t, out.String(), `"count":2`)
	require.Contains(t, out.String(), `"partition":3,"offset":8804`)
	require.NotContains(t, out.String(), "secret-key")
}
