package cold_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/docker"
	"dedupledger/ledger/cold"
)

// through opens the ledger by way of a PgBouncer.
func (b *bundle) through(t *testing.T, o devservices.PgBouncerOptions) *cold.Ledger {
	t.Helper()
	services, err := devservices.New(t.Context(), devservices.Options{Connect: docker.Connect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, services.Close()) })
	bouncer, err := services.StartPgBouncer(t.Context(), server, o)
	require.NoError(t, err)
	return b.open(cold.Config{URL: bouncer.URL(b.url("dedup_app")), NoStatementCache: true, MaxConns: 4})
}

// TestPoolerInTransactionMode: the lock of a session is nobody's there. It is
// found out whatever the pooler's size and habits, also while others use it.
func TestPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	for _, o := range []devservices.PgBouncerOptions{
		{PoolMode: "transaction", PoolSize: 1},
		{PoolMode: "transaction", PoolSize: 2},
		{PoolMode: "transaction", PoolSize: 20},
		{PoolMode: "transaction", PoolSize: 20, Settings: []string{"server_round_robin = 1"}},
		{PoolMode: "transaction", PoolSize: 20, Settings: []string{"min_pool_size = 12"}},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d%v,busy=%v", o.PoolSize, o.Settings, busy), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				l := b.through(t, o)
				if busy && o.PoolSize > 4 {
					b.keepBusy(t, l)
				}
				for range 5 {
					s := l.Slots("g")
					_, _, err := s.Hold(t.Context())
					require.ErrorIs(t, err, cold.ErrPooled)
					require.ErrorContains(t, err, "$ordinal")
					require.NoError(t, s.Close(t.Context()))
				}
				require.Equal(t, "0", b.one(`select count(*) from pg_locks where locktype = 'advisory'
					and database = (select oid from pg_database where datname = current_database())`), "a lock was left with the pooler")
			})
		}
	}
}

// keepBusy uses the ledger as a filter would, until the test ends.
func (b *bundle) keepBusy(t *testing.T, l *cold.Ledger) {
	t.Helper()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for t.Context().Err() == nil {
				_ = l.Ping(t.Context())
			}
		})
	}
	t.Cleanup(wg.Wait)
}

// TestPoolerInSessionMode: a connection has its server process for itself.
func TestPoolerInSessionMode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.through(t, devservices.PgBouncerOptions{PoolMode: "session", PoolSize: 20})
	first, second := l.Slots("g"), l.Slots("g")
	for want, s := range []*cold.Slots{first, second} {
		slot, _, err := s.Hold(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, slot)
	}
	_, lost, err := second.Hold(t.Context())
	require.NoError(t, err)
	b.killLock(1)
	awaitClosed(t, "the loss of the lock", lost)
	slot, _, err := second.Hold(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, slot)
	require.NoError(t, first.Close(t.Context()))
	require.Eventually(t, func() bool {
		return b.one(`select count(*) from pg_locks where locktype = 'advisory' and objid = 0
			and database = (select oid from pg_database where datname = current_database())`) == "0"
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, second.Close(t.Context()))
}
