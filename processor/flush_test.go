package processor

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// countedFlushes counts the statements that a flush costs.
type countedFlushes struct {
	*memLedger
	flushed int
}

func (c *countedFlushes) Flush(ctx context.Context, as []ledger.Advance) error {
	c.flushed++
	return c.memLedger.Flush(ctx, as)
}

// A partition at rest is written once, be it only for the ends of its outputs:
// an idle session would else write every row with each empty poll.
func TestAFlushIsWrittenOnce(t *testing.T) {
	t.Parallel()
	l := &countedFlushes{memLedger: newMemLedger()}
	key := ledger.PositionKey{Partition: ledger.Partition{Topic: ledger.TopicID{1}}, Topic: rawTopic, Group: "dedup"}
	claim := ledger.NewClaim()
	made, err := l.OpenPosition(t.Context(), key, claim, at(0, 5), ledger.Outputs{})
	require.NoError(t, err)
	require.True(t, made)
	p := &part{place: place{rawTopic, 0}, id: key.Partition, claim: claim, d: at(0, 5), wrote: at(0, 5)}
	p.start(at(0, 5), ledger.Outputs{cleanTopic: {0: 7}})
	s := &session{
		cfg: &Config{Ledger: Ledger{Positions: l}}, state: &sessionState{},
		log: slog.New(slog.DiscardHandler), parts: map[place]*part{p.place: p},
	}
	for range 3 {
		require.NoError(t, s.flush(t.Context(), false))
	}
	require.Equal(t, 1, l.flushed)
	p.committed(at(0, 6), ledger.Outputs{cleanTopic: {0: 8}})
	require.NoError(t, s.flush(t.Context(), false))
	require.Equal(t, 2, l.flushed)
}
