package processor

import (
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func scopesOf(reg *prometheus.Registry, most int) *scopeCounters {
	return newScopeCounters(factory{reg}, most)
}

// series is the metric by its labels, "tenant:flow status".
func series(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			by := map[string]string{}
			for _, l := range m.GetLabel() {
				by[l.GetName()] = l.GetValue()
			}
			all[by["tenant"]+":"+by["flow"]+" "+by["status"]] = m.GetCounter().GetValue()
		}
	}
	return all
}

// TestScopesAreBounded: first come, and they keep their pair; whatever comes
// later is other, from however many sessions, and nothing is lost.
func TestScopesAreBounded(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	c := scopesOf(reg, 2)
	c.add("acme:as2", &verdicts{ledger.New: 3})
	c.add("?:?", &verdicts{ledger.Invalid: 1})
	var sessions sync.WaitGroup
	for i := range 4 {
		sessions.Go(func() {
			for j := range 100 {
				c.add("t"+strconv.Itoa(i)+":f"+strconv.Itoa(j), &verdicts{ledger.Seen: 2})
				c.add("acme:as2", &verdicts{ledger.Drift: 1})
			}
		})
	}
	sessions.Wait()
	require.Equal(t, map[string]float64{
		"acme:as2 NEW": 3, "acme:as2 SEEN": 0, "acme:as2 DRIFT": 400, "acme:as2 INVALID": 0,
		"?:? NEW": 0, "?:? SEEN": 0, "?:? DRIFT": 0, "?:? INVALID": 1,
		"other:other NEW": 0, "other:other SEEN": 800, "other:other DRIFT": 0, "other:other INVALID": 0,
	}, series(t, reg))
}

func TestNoScopes(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	scopesOf(reg, 0).add("acme:as2", &verdicts{ledger.New: 3})
	require.Empty(t, series(t, reg))
}
