package cold_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"dedupledger/ledger/cold"
)

// setClock gives registrations and months a clock that stands; PostgreSQL's own cannot be
// moved. It may be called again.
func (b *bundle) setClock(at time.Time) {
	b.Helper()
	b.exec(`create or replace function public.test_now() returns timestamptz language sql volatile security definer as $$ select timestamptz '` +
		at.UTC().Format(time.RFC3339Nano) + `' $$`)
	for _, function := range []string{"dedup_register_3", "dedup_months_1"} {
		const clock = "clock_timestamp()"
		if def := b.one(`select pg_get_functiondef($1::regproc)`, function); strings.Contains(def, clock) {
			require.Equal(b, 1, strings.Count(def, clock))
			b.exec(strings.Replace(def, clock, "public.test_now()", 1))
		}
	}
}

// The clock passes midnight before the first of a month whose partitions nobody
// has made: its first records make them, and keys of the second before are known.
// Fault card: F06.
func TestTheFirstOfAMonthThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now().UTC()
	first := time.Date(now.Year(), now.Month()+8, 1, 0, 0, 0, 0, time.UTC)
	const window = 90 * 24 * time.Hour
	s := b.session(1, 0)
	b.setClock(first.Add(-time.Second))
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 0, key: "old", payload: "a", window: window}))
	count := func(month time.Time) string {
		return b.one(`select count(*) from pg_class where relname = any ($1)`, []string{
			"dedup_ledger" + month.Format("_2006_01"), "dedup_sighting" + month.Format("_2006_01"),
		})
	}
	require.Equal(t, "2", count(first.AddDate(0, 0, -1)))
	for _, table := range []string{"dedup_ledger", "dedup_sighting"} { // made with it, as a month ahead
		b.exec("drop table " + table + first.Format("_2006_01"))
	}
	require.Equal(t, "0", count(first))
	b.setClock(first)
	require.Equal(t, []string{"SEEN", "NEW", "SEEN"}, s.run(
		rec{offset: 1, key: "old", payload: "a", window: window},
		rec{offset: 2, key: "new", payload: "a", window: window},
		rec{offset: 3, key: "new", payload: "a", window: window}))
	require.Equal(t, "2", count(first))
	require.Equal(t, "1", b.one(`select count(*) from dedup_ledger`+first.Format("_2006_01")))
}

// Several processes make months at once, while records are registered.
// Fault card: F06.
func TestMonthsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	var g errgroup.Group
	for range 4 {
		l := b.open(cold.Config{MaxConns: 1})
		g.Go(func() error {
			for ahead := range 12 {
				if _, err := l.EnsureMonths(t.Context(), ahead); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for offset := range int64(50) {
		require.Equal(t, []string{"NEW"}, s.run(rec{offset: offset, key: "k" + time.Duration(offset).String(), payload: "a"}))
	}
	require.NoError(t, g.Wait())
	require.Equal(t, "24", b.one(`select count(*) from pg_inherits where inhparent in ('dedup_ledger'::regclass, 'dedup_sighting'::regclass)`))
	require.Equal(t, "0", b.one(`select count(*) from pg_class c join pg_inherits i on i.inhrelid = c.oid where pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'`),
		"no month can be detached concurrently beside a DEFAULT partition")
}

// Somebody detaches an old month as docs/tables.md says, and is interrupted: the
// month is neither in nor out. Records are registered and months made meanwhile,
// another detach is refused, and FINALIZE ends it.
// Fault card: F06.
func TestInterruptedDetach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 0, key: "k", payload: "a"}))
	old := time.Now().UTC().AddDate(-2, 0, 0)
	month := "dedup_ledger" + old.Format("_2006_01")
	b.exec(`select dedup_month_1($1)`, old) // a timestamp without a zone would be one of St. John's
	b.interruptDetach(month)

	require.Equal(t, []string{"SEEN", "NEW"}, s.run(rec{offset: 1, key: "k", payload: "a"}, rec{offset: 2, key: "k2", payload: "a"}))
	days, err := b.l.EnsureMonths(t.Context(), 8)
	require.NoError(t, err)
	require.Greater(t, days, 8*28)
	require.Equal(t, []string{"SEEN"}, s.run(rec{offset: 3, key: "k2", payload: "a"}))

	next := "dedup_ledger" + time.Now().UTC().AddDate(0, 1, 1-time.Now().UTC().Day()).Format("_2006_01")
	_, err = b.admin.Exec(t.Context(), "alter table dedup_ledger detach partition "+next+" concurrently")
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Detail+refused.Hint, "FINALIZE")
	b.exec("alter table dedup_ledger detach partition " + month + " finalize")
	b.exec("drop table " + month)
	b.exec("alter table dedup_ledger detach partition " + next + " concurrently")
	require.Equal(t, []string{"SEEN"}, s.run(rec{offset: 4, key: "k2", payload: "a"}))
}

// interruptDetach ends a DETACH CONCURRENTLY between its two transactions: an old
// snapshot on the table keeps it waiting there.
func (b *bundle) interruptDetach(month string) {
	b.Helper()
	reader := b.held("select from dedup_ledger")
	c, err := pgx.Connect(b.Context(), b.url(""))
	require.NoError(b, err)
	defer c.Close(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.WithoutCancel(b.Context()), "alter table dedup_ledger detach partition "+month+" concurrently")
		ended <- err
	}()
	require.Eventually(b, func() bool {
		return len(ended) == 1 || b.one(`select count(*) from pg_inherits where inhdetachpending`) == "1"
	}, time.Minute, 10*time.Millisecond)
	if len(ended) == 1 {
		require.FailNow(b, "the detach ended by itself", "%v", <-ended)
	}
	b.exec("select pg_cancel_backend($1)", c.PgConn().PID())
	require.Error(b, <-ended)
	require.NoError(b, reader.Rollback(b.Context()))
	require.Equal(b, "1", b.one(`select count(*) from pg_inherits where inhdetachpending`))
}

// held is a transaction that has done q and stays open, until the test ends at
// the latest: a pool does not close before it has all its connections back.
func (b *bundle) held(q string) pgx.Tx {
	b.Helper()
	tx, err := b.admin.Begin(b.Context())
	require.NoError(b, err)
	b.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(b.Context())) })
	_, err = tx.Exec(b.Context(), q)
	require.NoError(b, err)
	return tx
}

// Counters, offsets and what has a sequence pass 2^31, and duplicates take no
// number of a sequence.
// Fault card: F09.
func TestNothingEndsAtTwoBillion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	require.Equal(t, []string{"NEW", "SEEN"}, s.run(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "a"}))
	const edge = 1<<31 - 2
	b.exec(`update dedup_ledger set retry_count = $1, drift_count = $1`, edge)
	b.exec(`update dedup_hour set count = $1, bytes = $1`, edge)
	sequences := strings.Fields(b.one(`select string_agg(quote_ident(schemaname) || '.' || quote_ident(sequencename), ' ' order by sequencename) from pg_sequences
		where sequencename not like 'dedup_migration%'`))
	require.Equal(t, []string{"public.dedup_action_id_seq", "public.dedup_gap_id_seq"}, sequences)
	for _, q := range sequences {
		b.exec(`select setval($1::regclass, $2)`, q, edge)
	}
	var again []rec
	for i := range int64(5) {
		again = append(again, rec{offset: edge + i, key: "k", payload: "a"})
	}
	again = append(again, rec{offset: edge + 5, key: "k", payload: "b"}, rec{offset: edge + 6, key: "k2", payload: "b"})
	require.Equal(t, append(slices.Repeat([]string{"SEEN"}, 5), "DRIFT", "NEW"), s.run(again...))
	require.Equal(t, "2147483652 2147483647", b.one(`select retry_count || ' ' || drift_count from dedup_ledger where key like '%k'`))
	require.Equal(t, "2147483651", b.one(`select sum(count) from dedup_hour where status = 'SEEN'`))
	require.Equal(t, "2147483653", b.one(`select d_offset from dedup_position`))
	for _, q := range sequences {
		require.Equal(t, "2147483646", b.one(`select last_value from `+q), "%s: duplicates take no number", q)
	}
	for range 5 {
		b.exec(`insert into dedup_action (actor, kind, reason) values ('somebody', 'skip', 'test')`)
	}
	require.Equal(t, "2147483651", b.one(`select max(id) from dedup_action`))
	require.Equal(t, "null", b.one(`select string_agg(table_name || '.' || column_name, ' ') from information_schema.columns
		where table_schema = 'public' and table_name like 'dedup\_%' and table_name not like 'dedup_migration%' and table_name !~ '_\d{4}_\d\d$'
		and data_type in ('integer', 'smallint', 'real') and column_name !~ '(^|_)(partition|epoch|gate|timeline|max_window|runs_from)$'`),
		"columns that end at 2^31 and are neither a Kafka partition or epoch, nor bounded")
	require.Equal(t, "2", b.one(`select count(*) from pg_sequences where data_type = 'bigint'::regtype and sequencename not like 'dedup_migration%'`))
}
