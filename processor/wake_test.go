package processor

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// When the ledger answers one session, those that wait for it ask at once, and not at
// the end of their waits, which are seconds long by then.
func TestAnAnswerWakesTheSessionsThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proc := New(Config{Sessions: 3, Registry: prometheus.NewRegistry()})
		sessionOf := func(i int) *session {
			return &session{
				proc: proc, cfg: &proc.cfg, m: proc.m, state: proc.states[i], log: slog.New(slog.DiscardHandler),
				parts: map[place]*part{{"raw", 0}: {phase: pending}}, failures: 20,
			}
		}
		first, postponed, busy := sessionOf(0), sessionOf(1), sessionOf(2)
		first.noteFailure("asking", ledger.ErrUnavailable)
		postponed.postpone(ledger.ErrUnavailable)
		postponed.wake()
		require.Empty(t, postponed.waiting(), "before anybody has had an answer")

		began := time.Now()
		waited := make(chan time.Duration)
		go func() {
			busy.afterFailure(t.Context(), "registering", ledger.ErrUnavailable)
			waited <- time.Since(began)
		}()
		synctest.Wait()
		<-time.After(time.Second) // of the bubble
		first.ledgerAnswered()
		require.Equal(t, time.Second, <-waited, "a session that waits between two batches")
		postponed.wake()
		require.Len(t, postponed.waiting(), 1, "partitions that wait for the position rule")
	})
}
