package integration

import (
	"context"
	"fmt"
	"testing"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// orders are n different messages of one flow, by their record key in one
// partition, and a resend of each.
func orders(scope string, from, n int) (messages []message) {
	for i := from; i < from+n; i++ {
		messages = append(messages, order(scope, fmt.Sprint(i), 5), order(scope, fmt.Sprint(i), 5))
	}
	return messages
}

// TestPostgresDownAndBack: without the ledger there is no verdict; the filter
// waits, visibly, and goes on by itself.
func TestPostgresDownAndBack(t *testing.T) {
	t.Parallel()
	pg, err := shared.services.StartPostgres(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Close()) })
	b := newBundle(t, setup{Postgres: pg})
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 50)...)
	b.check(t)

	require.NoError(t, pg.Stop(t.Context()))
	b.produce(t, orders("acme:edifact", 25, 50)...)
	require.NotEmpty(t, f.awaitNotReady(t), "the reasons are told")
	require.NoError(t, pg.Start(t.Context()))
	f.awaitReady(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestFrozenFilter: a filter stops in the middle (SIGSTOP), another takes its
// partitions, then it goes on with what it had in hand.
// Fault card: F14.
func TestFrozenFilter(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0, "DEDUP_PROCESSOR_BATCH_RECORDS=50")
	k := b.track(t)
	b.produce(t, append(orders("acme:edifact", 0, 500), orders("beta:edifact", 0, 500)...)...)
	k.awaitCount(t, 100)
	f.freeze(t)
	g := b.start(t, 1)
	b.awaitOutputs(t)
	f.thaw(t)
	b.produce(t, orders("acme:edifact", 400, 200)...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}

// TestCheckerOnRealTopics is the checker's control on what it really reads: a
// copy that somebody else puts into clean is found.
func TestCheckerOnRealTopics(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 3)...)
	b.check(t)
	f.term(t)

	records, err := laws.ReadCommitted(t.Context(), b.brokers, b.admin, b.clean...)
	require.NoError(t, err)
	require.Len(t, records, 3)
	r := records[1]
	forged := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
	require.NoError(t, b.client.ProduceSync(context.WithoutCancel(t.Context()), forged).FirstErr())
	o, err := b.observe(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, o.Judge(), "law 1")
	require.ErrorContains(t, o.Judge(), "law 2")
}

// TestPostgresTurnsReadOnly: the server goes on answering and takes no writes, as
// a primary that was demoted. Nothing is decided and nothing committed; when it
// takes writes again the filter goes on by itself.
func TestPostgresTurnsReadOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 50)...)
	b.check(t)
	reconnect := `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = 'dedup_app'`
	readOnly := "alter role dedup_app in database " + b.db.Name + " %s default_transaction_read_only"
	require.NoError(t, b.query(t.Context(), fmt.Sprintf(readOnly, "set")+" = on", nil))
	b.awaitSQL(t, `select true from (select count(*) from (`+reconnect+`) x) y`)
	b.produce(t, orders("acme:edifact", 25, 50)...)
	f.awaitReason(t, "read-only transaction")
	require.EqualValues(t, 100, b.sumOf(t, `select sum(count)::bigint from dedup_hour`), "decided")
	require.Len(t, b.observeOnly(t).Outputs, 100)

	require.NoError(t, b.query(t.Context(), fmt.Sprintf(readOnly, "reset"), nil))
	b.awaitSQL(t, `select true from (select count(*) from (`+reconnect+`) x) y`)
	f.awaitReady(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
