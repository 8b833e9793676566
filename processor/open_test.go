package processor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"dedupledger/ledger"
)

// Where a partition is filtered from is written down before the first poll, with
// nothing decided and nothing committed yet. With a row that came with the first
// chunk only:
//
//	a filter starts at offset 0, polls three records and cannot register them
//	it ends; retention takes the three, or another tool sets the group behind them
//	the next filter finds no row: a new partition, filtered from offset 3
//
// and nobody would know that three records have no output.
func TestTheFirstStartIsWrittenDownBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	t.Run("records expire", func(t *testing.T) {
		t.Parallel()
		b := startedInVain(t, "a", "b", "c")
		var to kadm.Offsets
		to.AddOffset(rawTopic, 0, 3, -1)
		deleted, err := b.adm.DeleteRecords(t.Context(), to)
		require.NoError(t, errors.Join(err, deleted.Error()))
		b.produce(0, "d")
		stop := b.start()
		require.Equal(t, map[string]int{"clean.as2 d": 1}, b.read(1))
		stop()
		gaps := b.ledger.gaps
		require.Len(t, gaps, 1, "gaps")
		require.Equal(t, ledger.GapLogStart, gaps[0].Kind)
		require.Equal(t, ledger.Range{To: ledger.Position{Offset: 3}}, gaps[0].Range)
	})
	t.Run("the group is set", func(t *testing.T) {
		t.Parallel()
		b := startedInVain(t, "a", "b", "c")
		b.produce(0, "d")
		b.setGroup(map[int32]int64{0: 3})
		b.start()
		require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 c": 1, "clean.as2 d": 1}, b.read(4))
	})
}

// startedInVain is a bundle whose first filter has polled and registered nothing.
func startedInVain(t *testing.T, keys ...string) *bundle {
	t.Helper()
	b := setup(t)
	b.produce(0, keys...)
	tried := make(chan struct{}, 1)
	b.ledger.fail = func(*ledger.Chunk) error {
		select {
		case tried <- struct{}{}:
		default:
		}
		return ledger.ErrUnavailable
	}
	stop := b.start()
	<-tried
	stop()
	b.ledger.fail = nil
	b.leave()
	return b
}
