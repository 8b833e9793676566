package cold_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// Fault card: F07.
func TestCopiesInOneChunk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	chunk := []rec{
		{offset: 0, key: "k", payload: "a"},
		{offset: 1, key: "k", payload: "a"},
		{offset: 2, key: "k", payload: "b"},
	}
	a := s.register(chunk...)
	require.Equal(t, []string{"NEW", "SEEN", "DRIFT"}, s.verdicts(a, chunk...))
	require.Equal(t, []int64{0, 1, 2}, []int64{a.Results[0].Repeat, a.Results[1].Repeat, a.Results[2].Repeat})
	require.Equal(t, "2/1", b.counters("k"))

	// The row is there: three copies add three.
	a = s.register(rec{offset: 3, key: "k", payload: "a"}, rec{offset: 4, key: "k", payload: "c"}, rec{offset: 5, key: "k", payload: "a"})
	require.Equal(t, []int64{3, 4, 5}, []int64{a.Results[0].Repeat, a.Results[1].Repeat, a.Results[2].Repeat})
	require.Equal(t, "5/2", b.counters("k"))
	require.Equal(t, "t1:as2 DRIFT 2, t1:as2 NEW 1, t1:as2 SEEN 3", b.hours())
}

func TestRedeliveryCountsOnceWithOtherBorders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	var records []rec
	var want []string
	for i := range int64(12) {
		r := rec{offset: i, key: fmt.Sprintf("k%d", i%4), payload: fmt.Sprint(i % 3)}
		if i == 7 {
			r = rec{offset: i, reason: "key.missing"}
		}
		records = append(records, r)
	}
	want = s.run(records...)
	accounts, counters := b.hours(), b.one(`select array_agg(row(key, retry_count, drift_count) order by key) from dedup_ledger`)
	for _, borders := range [][]int{{0, 12}, {0, 5, 12}, {0, 1, 2, 7, 8, 12}, {3, 9}} {
		again := s.take()
		for i := 1; i < len(borders); i++ {
			part := records[borders[i-1]:borders[i]]
			require.Equal(t, want[borders[i-1]:borders[i]], again.run(part...))
		}
		require.Equal(t, accounts, b.hours())
		require.Equal(t, counters, b.one(`select array_agg(row(key, retry_count, drift_count) order by key) from dedup_ledger`))
	}
	require.Equal(t, "8", b.one(`select count(*) from dedup_sighting`))

	// Half known, half not: only the new ones count.
	again := s.take()
	again.run(append(records[10:], rec{offset: 12, key: "k0", payload: "0"})...)
	require.Equal(t, "13", b.one(`select sum(count) from dedup_hour`))
}

func TestExpiredRowAndReuse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 0, key: "k", payload: "a"}))
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '1 hour', expires_at = clock_timestamp()`)
	require.Equal(t, []string{"NEW", "SEEN"}, s.run(rec{offset: 1, key: "k", payload: "a"}, rec{offset: 2, key: "k", payload: "a"}))
	require.Equal(t, "2", b.one(`select count(*) from dedup_ledger`))
	require.Equal(t, "0/0 1/0", b.counters("k"))
}

func TestAClosedRowHidesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	// A closed row, later than the live one.
	b.exec(`insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, closed_at, closed_by, origin_gate, scope, key, payload_sha256, hash_mode, flow)
		select h, clock_timestamp(), clock_timestamp(), expires_at + interval '1 hour', clock_timestamp(), 'test', 3, scope, key, payload_sha256, hash_mode, flow from dedup_ledger`)
	require.Equal(t, []string{"SEEN"}, s.run(rec{offset: 1, key: "k", payload: "a"}))
	b.exec(`update dedup_ledger set closed_at = clock_timestamp(), closed_by = 'reopen' where closed_at is null`)
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 2, key: "k", payload: "a"}))
}

func TestALongerWindowThenAShorter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	long := 300 * 24 * time.Hour
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 0, key: "k", payload: "a", window: long}))
	b.exec(`select dedup_month_1(now() - interval '200 days')`)
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '200 days', expires_at = expires_at - interval '200 days'`)
	require.Equal(t, []string{"SEEN", "NEW"}, s.run(rec{offset: 1, key: "k", payload: "a"}, rec{offset: 2, scope: "t1:x", key: "k", payload: "a"}))
	require.Equal(t, "t1:as2 25920000, t1:x 3600", b.one(`select string_agg(scope || ' ' || max_window, ', ' order by scope) from dedup_scope`))
}

// Two keys with one digest, and a digest that lies: scope and key decide.
func TestALyingDigest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	digest := ledger.Key{Scope: "t1:as2", Key: "k2"}.Digest()
	s.run(rec{offset: 0, key: "k1", payload: "a"})
	b.exec(`update dedup_ledger set h = $1`, digest)
	require.Equal(t, []string{"NEW", "SEEN"}, s.run(rec{offset: 1, key: "k2", payload: "a"}, rec{offset: 2, key: "k2", payload: "a"}))
	require.Equal(t, "k1 k2", b.one(`select string_agg(key, ' ' order by key) from dedup_ledger where h = $1`, digest))
}

func TestTheDigestIsThatOfTheColumn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.session(1, 0).run(rec{offset: 0, key: "k1", payload: "a"})
	require.Equal(t, "t", b.one(`select bool_and(h = ('x' || substr(encode(sha256(convert_to(scope, 'UTF8') || '\x00'::bytea || convert_to(key, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint) from dedup_ledger`)[:1])
}

// DRIFT in SQL is that of ledger.Judge, whatever modes and hashes meet.
// Fault card: F17.
func TestDriftIsAsJudged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	variants := []rec{
		{payload: "a"},
		{payload: "b"},
		{payload: "a", mode: "edifact", canon: "c"},
		{payload: "b", mode: "edifact", canon: "c"},
		{payload: "b", mode: "edifact", canon: "d"},
		{payload: "a", mode: "x12", canon: "c"},
	}
	var offset int64
	next := func(r rec, key string) rec {
		r.key, r.offset = key, offset
		offset++
		return r
	}
	check := func(records []rec) {
		var want []string
		for k, v := range s.run(records...) {
			if v != "NEW" {
				want = append(want, fmt.Sprintf("%d %s", records[k].offset, v))
			}
		}
		require.Equal(t, strings.Join(want, ", "), b.one(`select string_agg(concat_ws(' ', origin_offset, status, reason), ', ' order by origin_offset)
			from dedup_sighting where origin_offset between $1 and $2`, records[0].offset, records[len(records)-1].offset))
	}
	for i, first := range variants {
		s.run(next(first, fmt.Sprintf("met-%d", i)))
		var met []rec
		for _, v := range variants {
			met = append(met, next(v, fmt.Sprintf("met-%d", i)))
		}
		check(met)
		copies := []rec{next(first, fmt.Sprintf("in-chunk-%d", i))}
		for _, v := range variants {
			copies = append(copies, next(v, fmt.Sprintf("in-chunk-%d", i)))
		}
		check(copies)
	}
	require.Equal(t, b.one(`select sum(drift_count) from dedup_ledger`), b.one(`select sum(count) from dedup_hour where status = 'DRIFT'`))
}

func TestSightingsAreBoundedPerKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.l = b.open(cold.Config{KeepPerKey: 3})
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "a"}, rec{offset: 2, key: "k", payload: "a"})
	s.run(rec{offset: 3, key: "k", payload: "a"}, rec{offset: 4, key: "k", payload: "a"}, rec{offset: 5, key: "k", payload: "a"}, rec{offset: 6, reason: "key.missing"})
	require.Equal(t, "INVALID 1, SEEN 3", b.one(`select string_agg(x, ', ' order by x) from (select status || ' ' || count(*) x from dedup_sighting group by status) y`))
	require.Equal(t, "t1:as2 INVALID 1, t1:as2 NEW 1, t1:as2 SEEN 5", b.hours())

	// One that was only counted is refused by an output: its account moves too.
	last := s.registration(rec{offset: 5, key: "k", payload: "a"})
	for range 2 {
		require.NoError(t, b.l.Reject(t.Context(), s.claim, &last, "output.rejected"))
		require.Equal(t, "t1:as2 INVALID 2, t1:as2 NEW 1, t1:as2 SEEN 4", b.hours())
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	b.exec(`insert into dedup_scope (scope, gate) values ('t1:api', 2), ('t1:imported', null)`)
	records := []rec{
		{offset: 0, scope: "t1:api", key: "k", payload: "a"},
		{offset: 1, key: "k", payload: "a"},
		{offset: 2, scope: "t1:imported", key: "k", payload: "a"},
	}
	require.Equal(t, []string{"INVALID scope.fed_by_api", "NEW", "NEW"}, s.run(records...))
	require.Equal(t, "t1:api INVALID 1, t1:as2 NEW 1, t1:imported NEW 1", b.hours())
	require.Equal(t, "scope.fed_by_api k", b.one(`select reason || ' ' || key from dedup_sighting`))
	require.Equal(t, "2 1 1", b.one(`select string_agg(gate::text, ' ' order by scope) from dedup_scope`))

	api := &ledger.Chunk{Gate: ledger.GateAPI}
	for _, scope := range []string{"t1:api", "t1:as2", "t1:new"} {
		api.Registrations = append(api.Registrations, ledger.Registration{
			Origin: ledger.Origin{Gate: ledger.GateAPI, Client: "c", Attempt: scope}, Account: scope,
			Keys: []ledger.Key{{Scope: scope, Key: "k", Window: time.Hour}}, HashMode: ledger.HashRaw,
			PayloadSHA256: sha256.Sum256([]byte("a")),
		})
	}
	for _, inserted := range []bool{true, false} {
		a, err := b.l.Register(t.Context(), api)
		require.NoError(t, err)
		require.Equal(t, "scope.fed_by_kafka", a.Results[1].Refused)
		for _, i := range []int{0, 2} {
			require.Equal(t, inserted, a.Results[i].Inserted)
			require.Equal(t, api.Registrations[i].Origin, a.Results[i].Entry.Origin, "the same attempt meets itself")
			require.Zero(t, a.Results[i].Repeat)
		}
	}
}

// Fault card: F08.
func TestDataErrorsAreRejected(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	for name, spoil := range map[string]func(r *ledger.Registration){
		"NUL in the source":           func(r *ledger.Registration) { r.SourceService = "a\x00b" },
		"broken UTF-8 in the source":  func(r *ledger.Registration) { r.SourceService = "a\xff" },
		"source too long":             func(r *ledger.Registration) { r.SourceService = strings.Repeat("x", 41) },
		"key too long":                func(r *ledger.Registration) { r.Keys[0].Key = strings.Repeat("x", 201) },
		"window of nothing":           func(r *ledger.Registration) { r.Keys[0].Window = 0 },
		"window of more than allowed": func(r *ledger.Registration) { r.Keys[0].Window = 500 * 24 * time.Hour },
	} {
		c := s.chunk(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k2", payload: "a"})
		spoil(&c.Registrations[0])
		_, err := b.l.Register(t.Context(), c)
		require.ErrorIs(t, err, ledger.ErrRejected, name)
	}
	require.Equal(t, "0", b.one(`select seq from dedup_position`), "nothing was written")
	require.Equal(t, "0", b.one(`select count(*) from dedup_scope`))
}

// Fault card: F06.
func TestAMissingMonthIsMadeOnDemand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"}) // plans are made, and must notice
	b.exec(`do $$ declare v text; begin
		for v in select inhrelid::regclass::text from pg_inherits where inhparent in ('dedup_ledger'::regclass, 'dedup_sighting'::regclass) loop
			execute 'drop table ' || v;
		end loop; end $$`)
	require.Equal(t, []string{"NEW", "SEEN"}, s.run(rec{offset: 1, key: "k", payload: "a"}, rec{offset: 2, key: "k", payload: "a"}))
	require.Equal(t, "8", b.one(`select count(*) from pg_inherits where inhparent in ('dedup_ledger'::regclass, 'dedup_sighting'::regclass)`))
	days, err := b.l.EnsureMonths(t.Context(), 5)
	require.NoError(t, err)
	require.Greater(t, days, 5*30-2)
	require.Equal(t, "12", b.one(`select count(*) from pg_inherits where inhparent in ('dedup_ledger'::regclass, 'dedup_sighting'::regclass)`))
}

// A month that was detached is not made again and takes no row. Nothing is wrong
// with the records.
// Fault card: F06.
func TestADetachedMonthIsNoVerdict(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	month := "dedup_ledger_" + time.Now().UTC().Format("2006_01")
	b.exec("alter table dedup_ledger detach partition " + month)
	_, err := b.l.Register(t.Context(), s.chunk(rec{offset: 0, key: "a"}))
	require.ErrorIs(t, err, ledger.ErrUnavailable)
	require.NotErrorIs(t, err, ledger.ErrRejected)
}

// The database's default must not reach us, and under another level the
// function must refuse: its look-back would be older than its lock.
func TestIsolation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`alter database ` + b.name + ` set default_transaction_isolation = 'repeatable read'`)
	b.l = b.open(cold.Config{})
	require.Equal(t, []string{"NEW"}, b.session(1, 0).run(rec{offset: 0, key: "k", payload: "a"}))

	conn, err := pgx.Connect(t.Context(), b.url("dedup_app"))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	nulls := strings.TrimSuffix(strings.Repeat("null,", 41), ",")
	_, err = conn.Exec(t.Context(), `select dedup_register_3(`+nulls+`)`)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "DL001", refused.Code)
}

func TestWithoutAStatementCache(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.l = b.open(cold.Config{NoStatementCache: true})
	s := b.session(1, 0)
	require.Equal(t, []string{"NEW", "SEEN"}, s.run(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "a"}))
	s.learn(3, 0, s.learned(ledger.New, rec{offset: 2, key: "k2"}, ago(0)))
}
