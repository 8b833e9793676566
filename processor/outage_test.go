package processor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// silentPositions does not answer while it is silent.
type silentPositions struct {
	*memLedger
	silent atomic.Bool
	asked  atomic.Int32 // while silent
}

func (s *silentPositions) Claim(ctx context.Context, k ledger.PositionKey, c ledger.Claim) (ledger.PositionRow, bool, error) {
	if s.silent.Load() {
		s.asked.Add(1)
		return ledger.PositionRow{}, false, ledger.ErrUnavailable
	}
	return s.memLedger.Claim(ctx, k, c)
}

// lines is a log that is counted.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line...)
	return len(line), nil
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text, []byte(text))
}

func gauge(reg *prometheus.Registry, name string) (float64, error) {
	all, err := reg.Gather()
	if err != nil {
		return 0, err
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue(), nil
		}
	}
	return 0, errors.New(name + " is not there")
}

// The ledger fails and comes back while no message comes: the filter is ready
// again without one.
func TestAnIdleFilterKnowsThatTheLedgerIsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reg := prometheus.NewRegistry()
	positions := &silentPositions{memLedger: b.ledger}
	positions.silent.Store(true)
	var log lines
	b.start(func(c *Config) {
		c.Ledger.Positions, c.Registry = positions, reg
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	require.Eventually(t, func() bool {
		v, err := gauge(reg, "dedup_ledger_blocked_seconds")
		return err == nil && v > 0
	}, 20*time.Second, 5*time.Millisecond, "blocked")
	require.Eventually(t, func() bool { return positions.asked.Load() > 3 }, 20*time.Second, 5*time.Millisecond, "asked again")
	require.Equal(t, 1, log.count("the ledger does not answer"), "not at each try")
	positions.silent.Store(false)
	require.Eventually(t, func() bool {
		v, err := gauge(reg, "dedup_ledger_blocked_seconds")
		return err == nil && v == 0
	}, 20*time.Second, 5*time.Millisecond, "answering again")
	require.Eventually(t, func() bool { return log.count("the ledger answers again") == 1 }, 20*time.Second, 5*time.Millisecond)
}
