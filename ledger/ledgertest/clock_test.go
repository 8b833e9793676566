package ledgertest_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger/cold"
	"dedupledger/ledger/ledgertest"
)

// The registration in PostgreSQL gets a clock that moves on by a quarter of a
// second with each chunk. So windows end hundreds of times between a record's
// first registration and its redelivery, on any machine and at the same places
// for one seed; by the wall clock that takes a machine on which a chunk waits
// for a second.
func TestColdOnARunningClock(t *testing.T) {
	t.Parallel()
	l := load()
	l.Racing /= 4
	l.Exercise(t, func(t *testing.T) ledgertest.Ledger {
		under, _ := openTiers(t, func(*testing.T, *cold.Ledger) memory { return memory{} })
		runClock(t, under.pool)
		return under
	})
}

// runClock replaces the clock of the registration. It is read under the scope
// locks as the true one is, so the dates of a scope's rows go on growing.
func runClock(t *testing.T, owner *pgxpool.Pool) {
	t.Helper()
	var registration string
	require.NoError(t, owner.QueryRow(t.Context(),
		"select pg_get_functiondef('dedup_register_3'::regproc)").Scan(&registration))
	const clock = "clock_timestamp()"
	require.Equal(t, 1, strings.Count(registration, clock))
	for _, sql := range []string{
		"create sequence test_clock",
		`do $do$ begin execute format($f$
			create function test_now() returns timestamptz language sql volatile security definer as
			$$ select %L::timestamptz + nextval('public.test_clock') * interval '250 ms' $$ $f$, now());
		end $do$`,
		strings.Replace(registration, clock, "public.test_now()", 1),
	} {
		_, err := owner.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}
