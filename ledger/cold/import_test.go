package cold_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// told is a line of an import, by default of t1:as2 with a window of 60 days.
type told struct {
	scope, key, payload string
	window              time.Duration
	first               time.Time
}

const day = 24 * time.Hour

func imported(lines ...told) *ledger.Import {
	in := &ledger.Import{From: "old.csv"}
	for _, l := range lines {
		if l.scope == "" {
			l.scope = "t1:as2"
		}
		if l.window == 0 {
			l.window = 60 * day
		}
		in.Lines = append(in.Lines, ledger.ImportLine{
			Key: ledger.Key{Scope: l.scope, Key: l.key, Window: l.window}, Flow: "as2",
			PayloadSHA256: sha256.Sum256([]byte(l.payload)), FirstSeenAt: l.first,
		})
	}
	return in
}

func (b *bundle) bring(in *ledger.Import) []ledger.Imported {
	b.Helper()
	states, err := b.l.Import(b.Context(), in)
	require.NoError(b, err)
	return states
}

// rows is everything that an import may change.
func (b *bundle) rows() string {
	b.Helper()
	return b.one(`select concat_ws(E'\n', (select string_agg(l::text, E'\n' order by l::text) from dedup_ledger l),
		(select string_agg(s::text, E'\n' order by s::text) from dedup_scope s), (select count(*) from pg_inherits))`)
}

// TestImport: the row keeps the time that is told, its window counts from there, its
// month is made, and the filter's records are judged by it. The gate is set by the
// first record, not by the import; accounts are of records alone.
func TestImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := ago(40 * day)
	in := imported(told{key: "k", payload: "a", first: first}, told{scope: "t2:as2", key: "k", payload: "a", first: first, window: 300 * day})
	require.Equal(t, []ledger.Imported{ledger.Entered, ledger.Entered}, b.bring(in))
	require.Equal(t, "t1:as2 5184000 -, t2:as2 25920000 -",
		b.one(`select string_agg(scope || ' ' || max_window || ' ' || coalesce(gate::text, '-'), ', ' order by scope) from dedup_scope`))
	require.Equal(t, "null", b.hours())
	var at, last, expires time.Time
	require.NoError(t, b.admin.QueryRow(t.Context(), `select first_seen_at, last_seen_at, expires_at from dedup_ledger where scope = 't1:as2'`).Scan(&at, &last, &expires))
	require.Equal(t, []time.Time{first, first, first.Add(60 * day)}, []time.Time{at.UTC(), last.UTC(), expires.UTC()})
	require.Equal(t, "import old.csv 3 as2 raw", b.one(`select concat_ws(' ', v.origin, l.origin_client, l.origin_gate, l.flow, l.hash_mode)
		from dedup_ledger l join dedup_ledger_v v using (scope, key) where scope = 't1:as2'`))

	s := b.session(1, 0)
	a := s.register(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "b"}, rec{offset: 2, scope: "t2:as2", key: "k", payload: "a"}, rec{offset: 3, key: "k2"})
	require.Equal(t, []string{"SEEN", "DRIFT", "SEEN", "NEW"}, s.verdicts(a, rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "b"},
		rec{offset: 2, scope: "t2:as2", key: "k", payload: "a"}, rec{offset: 3, key: "k2"}))
	require.Equal(t, ledger.Origin{Gate: ledger.GateImport, Client: "old.csv"}, a.Results[0].Entry.Origin)
	require.Equal(t, first, a.Results[0].Entry.FirstSeenAt)
	require.Equal(t, "t1:as2 1, t2:as2 1", b.one(`select string_agg(scope || ' ' || gate, ', ' order by scope) from dedup_scope`))
	require.Equal(t, "t1:as2 DRIFT 1, t1:as2 NEW 1, t1:as2 SEEN 1, t2:as2 SEEN 1", b.hours())
	require.Equal(t, "2/1 1/0", b.one(`select string_agg(format('%s/%s', retry_count, drift_count), ' ' order by scope) from dedup_ledger where key = 'k'`))

	// Given again, in other chunks, nothing changes: neither the rows nor the gate.
	before := b.rows()
	require.Equal(t, []ledger.Imported{ledger.Known, ledger.Known}, b.bring(in))
	require.Equal(t, []ledger.Imported{ledger.Known}, b.bring(imported(told{key: "k", payload: "a", first: first})))
	require.Equal(t, before, b.rows())
}

// TestImportAndAliases: a key that is the alias of a live row is known; a record is a
// repeat of an imported row by whichever of its keys, and registers none of them then.
func TestImportAndAliases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	require.Equal(t, []string{"NEW"}, s.run(as(0, "x", "p1", "a1")))
	first := ago(40 * day)
	lines := imported(
		told{key: "a1", payload: "x", first: first}, told{key: "a1", payload: "y", first: first}, told{key: "p1", payload: "x", first: first},
		told{key: "a2", payload: "x", first: first}, told{key: "p9", payload: "x", first: first},
		told{key: "a4", payload: "x", first: ago(200 * day), window: 300 * day}) // farther back than any record's own window
	require.Equal(t, []ledger.Imported{ledger.Known, ledger.KnownOtherHash, ledger.Known, ledger.Entered, ledger.Entered, ledger.Entered}, b.bring(lines))
	records := []rec{as(1, "x", "p2", "a2"), as(2, "y", "p9", "a3"), as(3, "x", "p3", "a3"), as(4, "x", "p2"), as(5, "x", "p4", "a4"), as(6, "x", "a2", "p9")}
	want := []string{"SEEN alias a2 by a2", "DRIFT p9", "NEW", "NEW", "SEEN alias a4 by a4", "SEEN a2"}
	require.Equal(t, want, s.told(s.register(records...), records...))
	require.Equal(t, "a1>p1 a2 a3>p3 a4 p1 p2 p3 p9", b.one(liveRows))
	before, accounts := b.rows(), b.hours()
	for size := 1; size <= 3; size++ {
		again, got := s.take(), []string(nil)
		for part := range slices.Chunk(records, size) {
			got = append(got, again.told(again.register(part...), part...)...)
		}
		require.Equal(t, want, got)
		require.Equal(t, accounts, b.hours())
	}
	require.Equal(t, before, b.rows())
	require.Equal(t, []string{"2/0", "1/1", "1/0"}, []string{b.counters("a2"), b.counters("p9"), b.counters("a4")})

	// Closed, it is free, also for a record that comes by its alias; and stays known
	// to an import.
	b.exec(`update dedup_ledger set closed_at = clock_timestamp(), closed_by = 'test' where key = 'a2'`)
	other := b.session(1, 1)
	require.Equal(t, []string{"NEW", "SEEN"}, other.run(as(0, "x", "p5", "a2"), as(1, "x", "p5")))
	require.Equal(t, []ledger.Imported{ledger.Known, ledger.KnownOtherHash, ledger.Known, ledger.Known, ledger.Known, ledger.Known}, b.bring(lines))
}

// TestLearningWhatAnImportHas: PostgreSQL lost rows, and an import came before they
// were learned again. A repeat of an imported row is counted there; what is in clean
// takes the imported row's place, as an alias too.
func TestLearningWhatAnImportHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	first := ago(40 * day)
	lines := imported(told{key: "k", payload: "x", first: first}, told{key: "p1", payload: "x", first: first}, told{key: "a1", payload: "x", first: first})
	require.Equal(t, []ledger.Imported{ledger.Entered, ledger.Entered, ledger.Entered}, b.bring(lines))
	byAlias := s.learned(ledger.Seen, as(0, "x", "p2", "k"), first)
	byAlias.Matched = "k"
	lesson := s.lesson(3, 1, byAlias, s.learned(ledger.Drift, as(1, "y", "k"), first), s.learned(ledger.New, as(2, "x", "p1", "a1"), ago(time.Minute)))
	for range 2 {
		_, _, err := b.l.Learn(t.Context(), lesson)
		require.NoError(t, err)
		require.Equal(t, "2/1", b.counters("k"))
		require.Equal(t, "a1>p1 k p1", b.one(liveRows))
		require.Equal(t, "2", b.one(`select count(*) from dedup_ledger where closed_by = 'learned' and origin_gate = 3`))
	}
	require.Equal(t, []ledger.Imported{ledger.Known, ledger.Known, ledger.Known}, b.bring(lines))
	again, records := s.take(), []rec{as(2, "x", "p1", "a1"), as(3, "x", "p3", "a1")}
	require.Equal(t, []string{"NEW", "SEEN alias p1 by a1"}, again.told(again.register(records...), records...))
}

// TestAnImportedWindowEnds: with the time that is told, not with that of the import.
func TestAnImportedWindowEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// The window has some days left; then the row is made older by those.
	require.Equal(t, []ledger.Imported{ledger.Entered}, b.bring(imported(told{key: "k", payload: "a", first: ago(57 * day)})))
	s := b.session(1, 0)
	require.Equal(t, []string{"SEEN"}, s.run(rec{offset: 0, key: "k", payload: "a"}))
	require.Equal(t, "t", b.one(`select bool_and(expires_at between now() + interval '2 days' and now() + interval '3 days') from dedup_ledger`)[:1])
	b.exec(`select dedup_month_1(now() - interval '60 days')`)
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '3 days', expires_at = expires_at - interval '3 days'`)
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 1, key: "k", payload: "a"}))
}

// TestWhatAnImportLeavesOut: windows that are over, the future, and what the ledger
// knows. None makes a scope or lengthens a look-back.
func TestWhatAnImportLeavesOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "live", payload: "a"}, rec{offset: 1, key: "closed", payload: "a"}, rec{offset: 2, key: "ended", payload: "a"}, rec{offset: 3, key: "before", payload: "a"})
	b.exec(`update dedup_ledger set closed_at = clock_timestamp(), closed_by = 'reopen' where key = 'closed'`)
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '2 hours', expires_at = clock_timestamp() - interval '1 hour' where key = 'ended'`)
	b.exec(`select dedup_month_1(now() - interval '9 days')`)
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '9 days', expires_at = clock_timestamp() - interval '8 days' where key = 'before'`)
	before := b.rows()
	left := imported(
		told{scope: "t9:as2", key: "over", payload: "a", first: ago(61 * day)},
		told{scope: "t9:as2", key: "just over", payload: "a", first: ago(time.Second), window: time.Second},
		told{scope: "t9:as2", key: "future", payload: "a", first: ago(-time.Hour)},
		told{key: "live", payload: "a", first: ago(day)},
		told{key: "live", payload: "b", first: ago(day)},
		told{key: "closed", payload: "a", first: ago(day)}, // reopened here since: its next copy is NEW
		told{key: "ended", payload: "b", first: ago(day)},
	)
	want := []ledger.Imported{ledger.Over, ledger.Over, ledger.Future, ledger.Known, ledger.KnownOtherHash, ledger.Known, ledger.KnownOtherHash}
	require.Equal(t, want, b.bring(left))
	require.Equal(t, before, b.rows())
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 4, key: "closed", payload: "a"}))

	// What began and ended here before the line's time says nothing about it.
	require.Equal(t, []ledger.Imported{ledger.Entered}, b.bring(imported(told{key: "before", payload: "b", first: ago(day)})))
}

// TestKeysOfSeveralLines: the first is entered, in a chunk as over several.
func TestKeysOfSeveralLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := []told{
		{key: "k", payload: "a", first: ago(2 * day)},
		{scope: "t2:as2", key: "k", payload: "b", first: ago(2 * day)},
		{key: "k", payload: "a", first: ago(3 * day)},
		{key: "k", payload: "b", first: ago(day)},
		{key: "k", payload: "a", first: ago(99 * day)},
	}
	want := []ledger.Imported{ledger.Entered, ledger.Entered, ledger.Known, ledger.KnownOtherHash, ledger.Over}
	for _, dry := range []bool{true, false} {
		in := imported(lines...)
		in.DryRun = dry
		require.Equal(t, want, b.bring(in))
	}
	other := imported(lines...)
	for i := range other.Lines {
		other.Lines[i].Key.Key = "k2"
	}
	for i, line := range other.Lines {
		require.Equal(t, want[i:i+1], b.bring(&ledger.Import{From: "x", Lines: []ledger.ImportLine{line}}))
	}
	require.Equal(t, "4", b.one(`select count(*) from dedup_ledger`))
}

func TestADryImportWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.rows()
	in := imported(told{key: "k", payload: "a", first: ago(59 * day)}, told{scope: "t9:as2", key: "k", payload: "a", first: ago(99 * day), window: 200 * day})
	in.DryRun = true
	for range 2 {
		require.Equal(t, []ledger.Imported{ledger.Entered, ledger.Entered}, b.bring(in))
		require.Equal(t, before, b.rows())
	}
	in.DryRun = false
	require.Equal(t, []ledger.Imported{ledger.Entered, ledger.Entered}, b.bring(in))
}

// TestAnImportedMonthThatIsGone: a month that was taken out is not made again.
func TestAnImportedMonthThatIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := ago(100 * day)
	b.exec(`select dedup_month_1($1)`, first)
	b.exec(`alter table dedup_ledger detach partition dedup_ledger` + first.Format("_2006_01"))
	lines := imported(told{key: "gone", payload: "a", first: first, window: 300 * day}, told{key: "k", payload: "a", first: ago(0)})
	for _, dry := range []bool{true, false} {
		lines.DryRun = dry
		require.Equal(t, []ledger.Imported{ledger.MonthGone, ledger.Entered}, b.bring(lines))
	}
	require.Equal(t, "k", b.one(`select string_agg(key, ' ') from dedup_ledger`))
}

// TestImportBesideTheFilter: both come to the same keys, and each has one row. What
// is judged before the import came is NEW, and its copy SEEN.
func TestImportBesideTheFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const keys, chunk = 600, 50
	var all []told
	var records []rec
	for i := range keys {
		scope := fmt.Sprintf("t%d:as2", i%3)
		all = append(all, told{scope: scope, key: fmt.Sprintf("k%d", i), payload: "a", first: ago(45 * day)})
		records = append(records, rec{offset: int64(i), scope: scope, key: fmt.Sprintf("k%d", i), payload: "a"})
	}
	s := b.session(1, 0)
	var verdicts []string
	states := make([]ledger.Imported, 0, keys)
	var both sync.WaitGroup
	both.Go(func() {
		for i := 0; i < keys; i += chunk {
			verdicts = append(verdicts, s.run(records[i:i+chunk]...)...)
		}
	})
	both.Go(func() {
		for i := keys - chunk; i >= 0; i -= chunk { // from the other end: they meet
			states = append(states, b.bring(imported(all[i:i+chunk]...))...)
		}
	})
	both.Wait()
	require.Equal(t, fmt.Sprint(keys), b.one(`select count(*) from dedup_ledger`))
	require.Equal(t, fmt.Sprint(keys), b.one(`select count(distinct (scope, key)) from dedup_ledger`))
	for i, v := range verdicts {
		at := keys - chunk - i/chunk*chunk + i%chunk
		require.Equal(t, v == "NEW", states[at] == ledger.Known, "%s: %s, %d", records[i].key, v, states[at])
	}
}

func TestImportIsolationAndBounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := pgx.Connect(t.Context(), b.url("dedup_app"))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), `set default_transaction_isolation = 'repeatable read'`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `select dedup_import_1(false, 'x', '{}', '{}', '{}', '{}', '{}', '{}', '{}')`)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "DL001", refused.Code)

	require.Empty(t, b.bring(imported()))
	_, err = b.l.Import(t.Context(), &ledger.Import{Lines: make([]ledger.ImportLine, ledger.MaxChunk+1)})
	require.ErrorContains(t, err, "501 lines at once; 500 are allowed")
	_, err = b.l.Import(t.Context(), imported(told{key: "k", first: ago(0), window: 500 * day}))
	require.ErrorIs(t, err, ledger.ErrRejected)
	require.Equal(t, "0", b.one(`select count(*) from dedup_scope`))

	b.l = b.open(cold.Config{NoStatementCache: true})
	require.Equal(t, []ledger.Imported{ledger.Entered}, b.bring(imported(told{key: "k", first: ago(0)})))
}

// BenchmarkImport enters full chunks of one scope, whose rows lie in two months.
func BenchmarkImport(b *testing.B) {
	bb := setup(b)
	before := bb.cpu()
	n := 0
	for b.Loop() {
		in := &ledger.Import{From: "bench.csv"}
		for range ledger.MaxChunk {
			n++
			in.Lines = append(in.Lines, ledger.ImportLine{
				Key:           ledger.Key{Scope: "t1:as2", Key: fmt.Sprintf("edifact:4012345000009:14/4098765000010:14/%012d", n), Window: 90 * day},
				Flow:          "as2",
				PayloadSHA256: sha256.Sum256([]byte(fmt.Sprint(n))), FirstSeenAt: ago(time.Duration(n%50) * day),
			})
		}
		bb.bring(in)
	}
	report(b, bb, before)
}
