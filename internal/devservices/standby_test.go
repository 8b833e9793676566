package devservices

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestStandby: a commit is on the synchronous standby when it is answered, waits
// while the standby is away, and is there after a failover; what an asynchronous
// standby lacks is lost by one.
func TestStandby(t *testing.T) {
	t.Parallel()
	s, err := New(t.Context(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	primary, err := s.StartReplicable(t.Context())
	require.NoError(t, err)
	standby, err := s.StartStandby(t.Context(), primary, "one")
	require.NoError(t, err)
	require.NoError(t, primary.AwaitSynchronous(t.Context(), 0))
	require.NoError(t, primary.SetSynchronous(t.Context(), "one"))
	require.NoError(t, primary.AwaitSynchronous(t.Context(), 1))

	c, err := pgx.Connect(t.Context(), primary.URL())
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	_, err = c.Exec(t.Context(), "create table t (n int); insert into t values (1)")
	require.NoError(t, err)

	require.NoError(t, standby.Kill())
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(t.Context(), "insert into t values (2)")
		done <- err
	}()
	watch, err := pgx.Connect(t.Context(), primary.URL())
	require.NoError(t, err)
	defer watch.Close(context.WithoutCancel(t.Context()))
	require.NoError(t, primary.until(t.Context(), watch, "select exists (select from pg_stat_activity where wait_event = 'SyncRep')"))
	select {
	case err := <-done:
		require.Fail(t, "a commit did not wait for its standby", "%v", err)
	default:
	}
	require.NoError(t, standby.Start(t.Context()))
	require.NoError(t, <-done)

	require.NoError(t, primary.Kill())
	require.NoError(t, standby.Promote(t.Context()))
	require.Equal(t, []int{1, 2}, numbers(t, standby))
	require.NoError(t, standby.SetSynchronous(t.Context())) // it was copied before there was one
	next, err := s.StartStandby(t.Context(), standby, "two")
	require.NoError(t, err)

	require.NoError(t, next.Stop(t.Context()))
	n, err := pgx.Connect(t.Context(), standby.URL())
	require.NoError(t, err)
	_, err = n.Exec(t.Context(), "insert into t values (3)")
	require.NoError(t, err)
	require.NoError(t, n.Close(t.Context()))
	require.NoError(t, standby.Kill())
	require.NoError(t, next.Start(t.Context()))
	require.NoError(t, next.Promote(t.Context()))
	require.Equal(t, []int{1, 2}, numbers(t, next), "lost with the primary")
}

// numbers are the table's rows, of a server that is or becomes a primary.
func numbers(t *testing.T, p *Postgres) (all []int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, p.URL())
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	require.NoError(t, p.until(ctx, c, "select not pg_is_in_recovery()"))
	rows, err := c.Query(ctx, "select n from t order by n")
	require.NoError(t, err)
	all, err = pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	return all
}
