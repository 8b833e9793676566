package processor

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// Label values of what has no pair of its own.
const (
	otherScope  = "other" // came when all pairs were taken
	unreadScope = "?"     // the record key is not tenant:flow
)

// scopeCounters is dedup_scope_messages_total. Record keys come from whoever
// may write to a raw topic, so the pairs are bounded: the first ones that come
// keep theirs until the process ends, the rest is "other" (exact figures are in
// dedup_hour). All verdicts of a pair are born with it, so that the first
// increase of each can be seen.
type scopeCounters struct {
	vec  *prometheus.CounterVec // nil: not wanted
	most int

	mu    sync.Mutex
	pairs map[string]byVerdict // by account
	other byVerdict
}

type byVerdict [ledger.Invalid + 1]prometheus.Counter

// newScopeCounters counts at most so many pairs; 0 counts none, and there is no
// such metric.
func newScopeCounters(f factory, most int) *scopeCounters {
	if most <= 0 {
		return &scopeCounters{}
	}
	c := &scopeCounters{
		vec: f.counter("dedup_scope_messages_total", "Raw records by tenant, flow and verdict, counted after the commit; beyond metrics.scopes pairs: other.",
			"tenant", "flow", "status"),
		most: most, pairs: map[string]byVerdict{},
	}
	c.other = c.bear(otherScope, otherScope)
	return c
}

func (c *scopeCounters) bear(tenant, flow string) (born byVerdict) {
	for v := ledger.New; v <= ledger.Invalid; v++ {
		born[v] = c.vec.WithLabelValues(tenant, flow, v.String())
	}
	return born
}

// add counts what was committed of one account.
func (c *scopeCounters) add(account string, counts *verdicts) {
	if c.vec == nil {
		return
	}
	of := c.of(account)
	counts.each(func(v ledger.Verdict, n float64) { of[v].Add(n) })
}

func (c *scopeCounters) of(account string) byVerdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, known := c.pairs[account]
	switch {
	case known:
		return of
	case len(c.pairs) >= c.most:
		return c.other
	}
	tenant, flow := unreadScope, unreadScope
	if s, err := topics.ParseScope(account); err == nil {
		tenant, flow = s.Tenant, s.Flow
	}
	of = c.bear(tenant, flow)
	c.pairs[account] = of
	return of
}
