package cold_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// as is a record with a primary key and aliases.
func as(offset int64, payload, key string, aliases ...string) rec {
	return rec{offset: offset, key: key, aliases: aliases, payload: payload}
}

// aliasCases are records in their order, what each comes to, by which key, and
// what is live at the end: a row's key and the key it is an alias of.
var aliasCases = []struct {
	name    string
	records []rec
	want    []string
	live    string
}{
	{
		"the alias is known: none of its keys is registered, and who has one of them is the first",
		[]rec{as(0, "x", "p1", "a1"), as(1, "x", "p2", "a1"), as(2, "x", "p2"), as(3, "x", "p2"), as(4, "x", "a1")},
		[]string{"NEW", "SEEN alias p1 by a1", "NEW", "SEEN p2", "SEEN alias p1 by a1"},
		"a1>p1 p1 p2",
	},
	{
		"the primary key is known: its alias stays free",
		[]rec{as(0, "x", "p1"), as(1, "x", "p1", "a9"), as(2, "x", "p3", "a9")},
		[]string{"NEW", "SEEN p1", "NEW"},
		"a9>p3 p1 p3",
	},
	{
		"both are known, by two rows: that of the primary key says the verdict",
		[]rec{as(0, "x", "p1"), as(1, "y", "p2", "a2"), as(2, "y", "p1", "a2"), as(3, "y", "p3", "a2", "p1"), as(4, "y", "p4", "p1", "a2")},
		[]string{"NEW", "NEW", "DRIFT p1", "SEEN alias p2 by a2", "DRIFT alias p1 by p1"},
		"a2>p2 p1 p2",
	},
	{
		"an alias is another record's primary key, and the reverse",
		[]rec{as(0, "x", "p1"), as(1, "x", "p2", "p1"), as(2, "x", "p3", "a3"), as(3, "x", "a3", "a4"), as(4, "x", "p2", "a4")},
		[]string{"NEW", "SEEN alias p1 by p1", "NEW", "SEEN alias p3 by a3", "NEW"},
		"a3>p3 a4>p2 p1 p2 p3",
	},
	{
		"two share nothing but an alias, in a chain",
		[]rec{as(0, "x", "p1", "a1"), as(1, "x", "p2", "a1", "a2"), as(2, "x", "p3", "a2"), as(3, "y", "p4", "a2"), as(4, "x", "p2", "a1"), as(5, "x", "p1", "a2")},
		[]string{"NEW", "SEEN alias p1 by a1", "NEW", "DRIFT alias p3 by a2", "SEEN alias p1 by a1", "SEEN p1"},
		"a1>p1 a2>p3 p1 p3",
	},
	{
		"another scope is another key",
		[]rec{as(0, "x", "p1", "a1"), {offset: 1, scope: "t1:x", key: "p2", aliases: []string{"a1"}, payload: "x"}, as(2, "x", "p2")},
		[]string{"NEW", "NEW", "NEW"},
		"a1>p1 a1>p2 p1 p2 p2",
	},
	{
		"a hash of another mode is told before the alias",
		[]rec{
			{offset: 0, key: "p1", aliases: []string{"a1"}, payload: "x", mode: "edifact", canon: "c"},
			as(1, "y", "p2", "a1"),
			{offset: 2, key: "p2", aliases: []string{"a1"}, payload: "y", mode: "edifact", canon: "d"},
		},
		[]string{"NEW", "SEEN hash.not_comparable p1 by a1", "DRIFT hash.edifact p1 by a1"},
		"a1>p1 p1",
	},
}

// told is the verdicts, the row's primary key and the key by which a repeat is one.
func (s *session) told(a *ledger.Answer, records ...rec) []string {
	s.b.Helper()
	out := s.verdicts(a, records...)
	for i := range out {
		if r := &a.Results[i]; r.Refused == "" && r.Entry.Origin != s.registration(records[i]).Origin {
			out[i] += " " + r.Entry.Key
			if r.Matched != "" {
				out[i] += " by " + r.Matched
			}
		}
	}
	return out
}

const liveRows = `select string_agg(key || coalesce('>' || alias_of, ''), ' ' order by key, alias_of nulls first)
	from dedup_ledger where closed_at is null and expires_at > now()`

// Each case comes to the same whether its records are one chunk or one each, and
// when all come again, with other borders.
func TestAliases(t *testing.T) {
	t.Parallel()
	for _, c := range aliasCases {
		for _, size := range []int{len(c.records), 1, 2} {
			t.Run(fmt.Sprintf("%s/%d", c.name, size), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				s := b.session(1, 0)
				in := func(s *session, size int) (got []string) {
					for from := 0; from < len(c.records); from += size {
						part := c.records[from:min(from+size, len(c.records))]
						got = append(got, s.told(s.register(part...), part...)...)
					}
					return got
				}
				require.Equal(t, c.want, in(s, size))
				require.Equal(t, c.live, b.one(liveRows))
				accounts, books := b.hours(), b.one(aliasBooks)
				for again := range 3 {
					require.Equal(t, c.want, in(s.take(), 1+again))
					require.Equal(t, accounts, b.hours())
					require.Equal(t, books, b.one(aliasBooks))
				}
				require.Equal(t, fmt.Sprint(len(c.records)), b.one(`select sum(count) from dedup_hour`), "one record counts once")
				require.Equal(t, b.one(`select sum(count) from dedup_hour where status = 'NEW'`), b.one(`select count(*) from dedup_ledger where alias_of is null`))
				require.Equal(t, "0", b.one(`select coalesce(sum(retry_count), 0) from dedup_ledger where alias_of is not null`), "counted at the primary key's row")
			})
		}
	}
}

const aliasBooks = `select (select array_agg(row(scope, key, retry_count, drift_count, alias_of, closed_by) order by scope, key, first_seen_at) from dedup_ledger)::text
	|| (select array_agg(row(scope, key, origin_offset, status, reason, row_key, matched) order by origin_offset) from dedup_sighting)::text`

func TestAliasSightings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(as(0, "x", "p1", "a1"), as(1, "x", "p2", "a1"), as(2, "y", "p1"), as(3, "x", "a1"))
	require.Equal(t, "3/1", b.counters("p1"))
	require.Equal(t, "p2 p1 a1 SEEN alias, p1 - - DRIFT -, a1 p1 a1 SEEN alias", b.one(`select string_agg(
		concat_ws(' ', key, coalesce(row_key, '-'), coalesce(matched, '-'), status, coalesce(reason, '-')), ', ' order by origin_offset) from dedup_sighting`))
	require.Equal(t, "1", b.one(`select count(distinct row_first_seen_at) from dedup_sighting`))
	require.Equal(t, "t", b.one(`select bool_and(h = dedup_digest_1(scope, key)) from dedup_ledger`)[:1])
	require.Equal(t, "2", b.one(`select count(*) from dedup_ledger a join dedup_ledger p using (first_seen_at, expires_at, payload_sha256, hash_mode, origin_topic, origin_offset, flow, source_service)
		where p.alias_of is null`), "an alias has what its row has")
}

// The number of a repeat is its own also where some are repeats by an alias.
func TestAliasRepeatsKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	records := []rec{as(0, "x", "p1", "a1"), as(1, "x", "p2", "a1"), as(2, "x", "p1"), as(3, "y", "p3", "a1"), as(4, "x", "p1", "a1"), as(5, "y", "a1")}
	want := []string{"0/0", "1/1", "2/2", "3/1", "4/3", "5/2"}
	numbers := func(a *ledger.Answer) (all []string) {
		for _, r := range a.Results {
			all = append(all, fmt.Sprintf("%d/%d", r.Repeat, r.Copy))
		}
		return all
	}
	require.Equal(t, want, numbers(s.register(records...)))
	for size := range len(records) {
		again, got := s.take(), []string(nil)
		for from := 0; from < len(records); from += size + 1 {
			got = append(got, numbers(again.register(records[from:min(from+size+1, len(records))]...))...)
		}
		require.Equal(t, want, got)
	}
}

// About a record that comes again its own rows decide, also when they have ended
// and another record has its alias by now.
func TestAliasOfARedelivery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	first := as(0, "x", "p1", "a1")
	require.Equal(t, []string{"NEW"}, s.run(first))
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '1 hour', expires_at = clock_timestamp()`)
	require.Equal(t, []string{"NEW"}, other.run(as(0, "x", "p2", "a1")))
	s = s.take()
	require.Equal(t, []string{"NEW", "SEEN alias"}, s.run(first, as(1, "x", "p1", "a1")))
	require.Equal(t, "a1>p2 p2", b.one(liveRows))

	// The row of the alias has ended, that of the primary key lives, and the reverse.
	require.Equal(t, []string{"NEW", "NEW"}, s.run(as(2, "x", "p5", "a5"), as(3, "x", "p6", "a6")))
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '1 hour', expires_at = clock_timestamp() where key in ('a5', 'p6')`)
	require.Equal(t, []string{"SEEN", "SEEN alias", "NEW", "NEW"},
		other.run(as(1, "x", "p5", "a5"), as(2, "x", "p7", "a6"), as(3, "x", "p8", "a5"), as(4, "x", "p6", "a9")))
	require.Equal(t, []string{"NEW", "NEW"}, s.take().run(as(2, "x", "p5", "a5"), as(3, "x", "p6", "a6")))
}

// A repeat by an alias whose row went away comes again: its counters, sighting and
// account follow it.
func TestAliasRepeatIsCorrected(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	require.Equal(t, []string{"NEW", "NEW"}, other.run(as(0, "x", "p1", "a1"), as(1, "y", "p0", "a2")))
	records := []rec{as(0, "x", "p2", "a1", "a2"), as(1, "y", "p3", "a1")}
	require.Equal(t, []string{"SEEN alias", "DRIFT alias"}, s.run(records...))
	require.Equal(t, "2/1", b.counters("p1"))
	b.exec(`update dedup_ledger set closed_at = clock_timestamp(), closed_by = 'test' where key in ('p1', 'a1')`)
	for range 2 {
		require.Equal(t, []string{"DRIFT alias", "NEW"}, s.take().run(records...))
		require.Equal(t, "t1:as2 DRIFT 1, t1:as2 NEW 3", b.hours())
		require.Equal(t, "0/0", b.counters("p1"))
		require.Equal(t, "1/1", b.counters("p0"))
		require.Equal(t, "p2 p0 a2 DRIFT", b.one(`select string_agg(concat_ws(' ', key, row_key, matched, status), ', ') from dedup_sighting`))
	}
}

// An output refuses a record: all its rows are closed, and whoever has one of its
// keys is the first.
func TestRejectClosesAllKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, "2 closed, 0 live; NEW NEW", b.rejectAliased())
}

func (b *bundle) rejectAliased() string {
	b.Helper()
	s := b.session(1, 0)
	first := as(0, "x", "p1", "a1")
	require.Equal(b, []string{"NEW", "SEEN alias"}, s.run(first, as(1, "x", "p2", "a1")))
	reg := s.registration(first)
	for range 2 {
		require.NoError(b, b.l.Reject(b.Context(), s.claim, &reg, "output.rejected"))
		require.Equal(b, "t1:as2 INVALID 1, t1:as2 SEEN 1", b.hours())
	}
	rows := b.one(`select count(*) filter (where closed_by = 'output.rejected') || ' closed, ' || count(*) filter (where closed_at is null) || ' live' from dedup_ledger`)
	again := s.take()
	return rows + "; " + strings.Join(again.run(as(1, "x", "p2", "a1"), as(2, "x", "p1")), " ")
}

// A repeat by an alias, beyond those that have a sighting, is refused.
func TestRejectARepeatByAnAlias(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.l = b.open(cold.Config{KeepPerKey: 1})
	s := b.session(1, 0)
	s.run(as(0, "x", "p1", "a1"), as(1, "x", "p2", "a1"), as(2, "y", "p3", "a1"))
	require.Equal(t, "t1:as2 DRIFT 1, t1:as2 NEW 1, t1:as2 SEEN 1", b.hours())
	require.Equal(t, "1", b.one(`select count(*) from dedup_sighting`))
	reg := s.registration(as(2, "y", "p3", "a1"))
	for range 2 {
		require.NoError(t, b.l.Reject(t.Context(), s.claim, &reg, "output.rejected"))
		require.Equal(t, "t1:as2 INVALID 1, t1:as2 NEW 1, t1:as2 SEEN 1", b.hours())
		require.Equal(t, "1/0", b.counters("p1"), "the row that it matched counts it no more")
	}
	reg = s.registration(as(1, "x", "p2", "a1"))
	require.NoError(t, b.l.Reject(t.Context(), s.claim, &reg, "output.rejected"))
	require.Equal(t, "0/0", b.counters("p1"), "one with a sighting")
}

// The rows of the aliases come back with the primary key's, from what the outputs tell.
func TestLearnAliases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, "a1>p1 p1; 2/1; SEEN alias", b.learnAliased())
	require.Equal(t, "p2 p1 a1, p1 - -", b.one(`select string_agg(concat_ws(' ', key, coalesce(row_key, '-'), coalesce(matched, '-')), ', ' order by origin_offset)
		from dedup_sighting where origin_offset < 3`))
}

func (b *bundle) learnAliased() string {
	b.Helper()
	s := b.session(1, 0)
	first := ago(time.Minute)
	byAlias := s.learned(ledger.Seen, as(1, "x", "p2", "a1"), first)
	byAlias.Matched = "a1"
	lesson := s.lesson(3, 1, s.learned(ledger.New, as(0, "x", "p1", "a1"), first), byAlias, s.learned(ledger.Drift, as(2, "y", "p1"), first))
	for range 2 {
		_, _, err := b.l.Learn(b.Context(), lesson)
		require.NoError(b, err)
	}
	rows := b.one(liveRows) + "; " + b.counters("p1")
	n := s.take()
	return rows + "; " + strings.Join(n.run(as(3, "x", "p9", "a1")), " ")
}

// What learning finds is a fact for each of its keys. Of a row made meanwhile it
// takes these, and the rest is that record's still: copies may have been SEEN of it.
func TestLearnTakesAnAlias(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	records := []rec{as(0, "x", "p2", "a1"), as(1, "x", "p2"), as(2, "x", "p3", "a3"), as(3, "x", "p4", "a3")}
	want := []string{"NEW", "SEEN", "NEW", "SEEN alias"}
	require.Equal(t, want, other.run(records...))
	s.learn(2, 1, s.learned(ledger.New, as(0, "x", "p1", "a1"), ago(time.Minute)), s.learned(ledger.New, as(1, "x", "p3"), ago(time.Minute)))
	require.Equal(t, "a1>p1 a3>p3 p1 p2 p3", b.one(liveRows))
	for range 2 {
		require.Equal(t, want, other.take().run(records...))
		require.Equal(t, "t1:as2 NEW 4, t1:as2 SEEN 2", b.hours())
	}
	require.Equal(t, []string{"SEEN alias"}, other.take().run(as(4, "x", "p5", "a3")), "of the one that has it still")
}

// A row whose record lies in a gap is an orphan by whichever key it is met.
func TestOrphanOfAnAlias(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	require.Equal(t, []string{"NEW", "NEW"}, s.run(as(0, "x", "p1", "a1"), as(1, "x", "p3", "a3")))
	s.gap(ledger.GapSkip, 0, 2)
	records := []rec{as(0, "x", "p2", "a1"), as(1, "x", "p1", "a9"), as(2, "x", "p3", "a3"), as(3, "x", "p2")}
	a := other.register(records...)
	require.Equal(t, []string{"NEW", "NEW", "NEW", "SEEN"}, other.verdicts(a, records...))
	require.True(t, a.Results[0].Orphan && a.Results[1].Orphan && a.Results[2].Orphan && !a.Results[3].Orphan)
	require.Equal(t, "4", b.one(`select count(*) from dedup_ledger where closed_by = 'orphan'`))
	require.Equal(t, "a1>p2 a3>p3 a9>p1 p1 p2 p3", b.one(liveRows))
	require.Equal(t, []string{"NEW", "NEW", "NEW", "SEEN"}, other.take().run(records...))

	orphans, err := b.l.Orphans(t.Context(), other.key.Partition, ledger.Range{To: ledger.Position{Offset: 9}})
	require.NoError(t, err)
	require.Len(t, orphans, 3, "a record is one, whatever it has of keys")
	require.Empty(t, orphans[0].Copies)
}

func TestAliasesThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	for says, spoil := range map[string]func(r *ledger.Registration){
		"has 3 aliases; 2 are allowed":             func(r *ledger.Registration) { r.Keys = append(r.Keys, r.Keys[1], r.Keys[1]) },
		"has an alias of another scope or window":  func(r *ledger.Registration) { r.Keys[1].Window *= 2 },
		"has an alias of another scope or window ": func(r *ledger.Registration) { r.Keys[1].Scope = "t1:x" },
		"has one key twice":                        func(r *ledger.Registration) { r.Keys[1].Key = "p1" },
	} {
		c := s.chunk(as(0, "x", "p1", "a1"))
		spoil(&c.Registrations[0])
		_, err := b.l.Register(t.Context(), c)
		require.ErrorContains(t, err, "registration 0 "+strings.TrimSpace(says))
		require.ErrorContains(t, b.l.Reject(t.Context(), s.claim, &c.Registrations[0], "output.rejected"), strings.TrimSpace(says))
	}
}

// Each function with one line less, and the test that would have noticed.
func TestAliasControls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		function, from, to string
		want               string
		run                func(b *bundle) string
	}{
		"keys registered although one is another's": {
			"dedup_register_3", "from (select unnest(k_line) i, unnest(k_h) h, unnest(k_key) key, unnest(v_claim) claim) x\n        where x.claim",
			"from (select unnest(k_line) i, unnest(k_h) h, unnest(k_key) key, unnest(k_name) n) x where v_met[x.n] = 0",
			"a1>p2 p1 p2", func(b *bundle) string {
				b.session(1, 0).run(as(0, "x", "p1"), as(1, "x", "p1", "a1"), as(2, "x", "p2", "a1"))
				return b.one(liveRows)
			},
		},
		"rows of aliases left open": {
			"dedup_reject_2", "for i in 1 .. coalesce(cardinality(k_h), 0) loop", "for i in 1 .. 0 loop",
			"2 closed, 0 live; NEW NEW", (*bundle).rejectAliased,
		},
		"aliases not learned": {
			"dedup_learn_3", "if k_line[v_a] = i and not v_known then", "if false then",
			"a1>p1 p1; 2/1; SEEN alias", (*bundle).learnAliased,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			require.Equal(t, c.want, c.run(b), "as delivered")
			b = setup(t)
			text := b.one(`select pg_get_functiondef('` + c.function + `'::regproc)`)
			require.Equal(t, 1, strings.Count(text, c.from))
			b.exec(strings.Replace(text, c.from, c.to, 1))
			b.l = b.open(cold.Config{})
			require.NotEqual(t, c.want, c.run(b))
		})
	}
}
