package integration

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
)

// startBouncer puts a PgBouncer before the bundle's database and gives the role
// the settings that it keeps away, as docs/operations.md says. env leads a filter
// there.
func (b *bundle) startBouncer(t *testing.T, o devservices.PgBouncerOptions) (env []string) {
	t.Helper()
	bouncer, err := shared.services.StartPgBouncer(t.Context(), b.db.AdminURL, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bouncer.Close()) })
	for _, setting := range []string{"lock_timeout = '5s'", "statement_timeout = '15s'", "jit = off"} {
		require.NoError(t, b.query(t.Context(), `alter role dedup_app in database `+pgx.Identifier{b.db.Name}.Sanitize()+` set `+setting, nil))
	}
	return []string{"DEDUP_POSTGRES_URL=" + bouncer.URL(b.db.AppURL), "DEDUP_POSTGRES_STATEMENT_CACHE=false"}
}

// TestPgBouncerTransactionMode: auto is refused, with a sentence and before
// anything is consumed; with numbers the whole filter works, also when it is
// killed.
func TestPgBouncerTransactionMode(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	b.produce(t, orders("acme:edifact", 0, 20)...)
	for _, size := range []int{1, 20} {
		env := b.startBouncer(t, devservices.PgBouncerOptions{PoolMode: "transaction", PoolSize: size})
		b.requireFailure(t, append(env, "DEDUP_PROCESSOR_SLOT=auto"), `processor.slot "auto"`, "pooler in transaction mode", "$ordinal", "postgres.statement_cache: false")
		require.Zero(t, ask[int](t, b, `select count(*) from dedup_position`), "consumed")
	}
	env := b.startBouncer(t, devservices.PgBouncerOptions{PoolMode: "transaction", PoolSize: 8})
	f, g := b.start(t, 0, env...), b.start(t, 1, env...)
	l := b.startLoad(t, rng, "b", 8)
	l.passMore(t, 300)
	f.kill(t)
	f = b.start(t, 0, env...)
	l.passMore(t, 300)
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}

// TestPgBouncerSessionMode: a connection has its server process for itself, so
// auto works.
func TestPgBouncerSessionMode(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	env := append(b.startBouncer(t, devservices.PgBouncerOptions{PoolMode: "session", PoolSize: 40}), auto...)
	f, g := b.start(t, 0, env...), b.start(t, 1, env...)
	require.ElementsMatch(t, []int{0, 1}, []int{f.where(t).Slot, g.where(t).Slot})
	l := b.startLoad(t, rng, "e", 8)
	l.passMore(t, 300)
	slot := f.where(t).Slot
	f.kill(t)
	f = b.start(t, 0, env...)
	require.Equal(t, slot, f.where(t).Slot)
	l.passMore(t, 300)
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}
