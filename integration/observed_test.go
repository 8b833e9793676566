package integration

import (
	"testing"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
)

// watching is a message of a flow that is only observed.
func watching(m message) message {
	m.Want.Observe = true
	return m
}

// TestObservedFlow: a tenant's first weeks. Everything of it is in clean, once and
// marked, and counted as for a tenant who is enforced; also after PostgreSQL has
// forgotten it, which the filter learns from clean as what it was.
func TestObservedFlow(t *testing.T) {
	t.Parallel()
	b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2, Flows: `- {match: "newco:*", key: "hdr:*", mode: enforce}
		- {match: "newco:*", mode: observe}
		- {match: "quiet:*", payload: none}`})
	f := b.start(t, 0)
	f.awaitLog(t, "observing, not enforcing")
	b.produce(t, watching(order("newco:as2", "1", 5)), order("acme:as2", "1", 5))
	b.awaitOutputs(t)
	copied := b.copyData(t, pg)
	opaque := withHeader(order("newco:as2", "9", 1), "dedup-key", []byte("opaque"))
	opaque.Want = want{Key: "hdr:opaque"}
	quiet := order("quiet:as2", "1", 1)
	b.produce(t,
		watching(order("newco:as2", "1", 5)), watching(order("newco:as2", "1", 6)), watching(cutOrder("newco:as2", "2")),
		order("acme:as2", "1", 5), order("acme:as2", "1", 6), cutOrder("acme:as2", "2"),
		opaque, opaque, // a rule for its key enforces
		quiet, quiet, order("quiet:as2", "1", 2),
	)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 4, "SEEN": 4, "DRIFT": 3, "INVALID": 2}, b.statuses(t))
	f.awaitMetric(t, "dedup_observed_messages_total", nil, func(n float64) bool { return n == 3 })
	f.awaitMetric(t, "dedup_observe_rules", nil, func(n float64) bool { return n == 1 })
	require.Contains(t, b.try(t, nil, "doctor").stdout, "newco:* ("+b.config+":")
	for n := range 13 {
		if o := b.outputOf(t, n); o.Kind == laws.Duplicates {
			require.Equal(t, laws.Header(o.Record, "dedup-scope") == "quiet:as2", laws.Header(o.Record, "dedup-payload") == "omitted")
		}
	}
	f.kill(t)

	b.putBack(t, pg, copied)
	f = b.start(t, 0)
	b.produce(t, watching(order("newco:as2", "1", 5)), order("acme:as2", "1", 5), watching(order("newco:as2", "3", 5)))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 5, "SEEN": 6, "DRIFT": 3, "INVALID": 2}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}
