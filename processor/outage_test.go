package processor

import (
	"context"
	"errors"
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
}

func (s *silentPositions) Claim(ctx context.Context, k ledger.PositionKey, c ledger.Claim) (ledger.PositionRow, bool, error) {
	if s.silent.Load() {
		return ledger.PositionRow{}, false, ledger.ErrUnavailable
	}
	return s.memLedger.Claim(ctx, k, c)
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
	b.start(func(c *Config) { c.Ledger.Positions, c.Registry = positions, reg })
	require.Eventually(t, func() bool {
		v, err := gauge(reg, "dedup_ledger_blocked_seconds")
		return err == nil && v > 0
	}, 20*time.Second, 5*time.Millisecond, "blocked")
	positions.silent.Store(false)
	require.Eventually(t, func() bool {
		v, err := gauge(reg, "dedup_ledger_blocked_seconds")
		return err == nil && v == 0
	}, 20*time.Second, 5*time.Millisecond, "answering again")
}
