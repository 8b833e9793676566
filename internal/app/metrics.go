package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
	"dedupledger/ledger/hot"
)

func (a *app) buildInfo() {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dedup_build_info", Help: "1; the running version."}, []string{"version", "component"})
	g.WithLabelValues(a.Version, "filter").Set(1)
	a.reg.MustRegister(g)
}

// monthsMetric shows for how many days partitions exist.
func monthsMetric(reg prometheus.Registerer) func(days int) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dedup_months_ahead_days", Help: "Days for which month partitions exist."})
	reg.MustRegister(g)
	return func(days int) { g.Set(float64(days)) }
}

// gapsMetric shows by raw topic how many offsets nobody has acknowledged, as of
// the last answer of PostgreSQL.
func gapsMetric(reg prometheus.Registerer) func(open map[string]int64) {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "dedup_gap_records_unacknowledged", Help: "Offsets of raw in gaps that nobody has acknowledged.",
	}, []string{"topic"})
	reg.MustRegister(g)
	return func(open map[string]int64) {
		for topic, n := range open {
			g.WithLabelValues(topic).Set(float64(n))
		}
	}
}

// watchGaps asks until ctx ends. That PostgreSQL does not answer is told elsewhere.
func (a *app) watchGaps(ctx context.Context) {
	show := gapsMetric(a.reg)
	tick := time.NewTicker(gapsEvery)
	defer tick.Stop()
	for {
		if open, err := a.cold.OpenGaps(ctx); err == nil {
			show(open)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ledgerMetrics shows both tiers. The tiers come later than their observer, so
// they are handed in by shown.
func ledgerMetrics(reg prometheus.Registerer, h *hot.Hot) (observe func(string, time.Duration, error), shown func(*ledger.Tiers)) {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dedup_ledger_requests_total", Help: "Calls of a ledger tier."}, []string{"tier", "outcome"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "dedup_ledger_request_seconds", Help: "Time of a call of a ledger tier.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
	}, []string{"tier", "gate"})
	for _, tier := range []string{ledger.TierHot, ledger.TierCold} {
		for _, o := range []string{"ok", "error", "timeout"} {
			calls.WithLabelValues(tier, o)
		}
	}
	reg.MustRegister(calls, took, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "dedup_hot_circuit_open", Help: "1 while Redis is not asked.",
	}, func() float64 {
		if h.CircuitOpen() {
			return 1
		}
		return 0
	}))
	observe = func(tier string, d time.Duration, err error) {
		took.WithLabelValues(tier, "kafka").Observe(d.Seconds())
		calls.WithLabelValues(tier, outcome(err)).Inc()
	}
	shown = func(t *ledger.Tiers) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "dedup_hot_disagreements_total", Help: "Live facts of another origin where PostgreSQL had no row; changes no verdict.",
			ConstLabels: prometheus.Labels{"gate": "kafka"},
		}, func() float64 { return float64(t.Stats().Witnesses[ledger.GateKafka]) }))
	}
	return observe, shown
}

// outcome is a bounded label; a refusal is an answer.
func outcome(err error) string {
	switch {
	case err == nil, errors.Is(err, ledger.ErrClaimLost), errors.Is(err, ledger.ErrRejected):
		return "ok"
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	default:
		return "error"
	}
}

// registrar is the ledger as the filter uses it: registrations go through the
// tiers, so that they are seen; a rejection is PostgreSQL's alone.
type registrar struct {
	*ledger.Tiers
	cold *cold.Ledger
}

// Reject closes the row of a record that an output refused.
func (r registrar) Reject(ctx context.Context, claim ledger.Claim, reg *ledger.Registration, reason string) error {
	return r.cold.Reject(ctx, claim, reg, reason)
}
