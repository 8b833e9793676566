package cold_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger/cold"
)

// A chunk is decided and not committed; its window ends; a record of another
// partition makes the next row; then the chunk comes again, with fresh records
// behind it. The record that was NEW is again, by its own row: a copy may have been
// SEEN of it. The one that was SEEN of the old row and the fresh ones repeat the
// new row, numbered in their order. Each record stays counted once, and the row
// has no more sightings than are kept.
func TestRedeliveredBehindTheEndOfAWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.l = b.open(cold.Config{KeepPerKey: 3})
	s, other := b.session(1, 0), b.session(1, 1)
	old := []rec{{offset: 0, key: "k", payload: "a"}, {offset: 1, key: "k", payload: "a"}}
	require.Equal(t, []string{"NEW", "SEEN"}, s.run(old...))
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '1 hour', expires_at = clock_timestamp();
		update dedup_sighting set row_first_seen_at = (select first_seen_at from dedup_ledger)`)
	require.Equal(t, []string{"NEW"}, other.run(rec{offset: 0, key: "k", payload: "b"}))

	again := slices.Concat(old, []rec{
		{offset: 2, key: "k", payload: "a"}, {offset: 3, key: "k", payload: "b"}, {offset: 4, key: "k", payload: "b"},
	})
	s = s.take()
	a := s.register(again...)
	require.Equal(t, []string{"NEW", "DRIFT", "DRIFT", "SEEN", "SEEN"}, s.verdicts(a, again...))
	for i := range again {
		require.Equal(t, int64(i), a.Results[i].Repeat)
	}
	for range 2 { // and once more: nothing moves
		require.Equal(t, "0/0 4/2", b.counters("k"), "the old row has lost its repeat to the new one")
		require.Equal(t, "t1:as2 DRIFT 2, t1:as2 NEW 2, t1:as2 SEEN 2", b.hours())
		require.Equal(t, "1 DRIFT, 2 DRIFT, 3 SEEN", b.one(`select string_agg(origin_offset || ' ' || status, ', ' order by origin_offset)
			from dedup_sighting where row_first_seen_at = (select max(first_seen_at) from dedup_ledger)`))
		s = s.take()
		s.run(again...)
	}
	require.Equal(t, "3", b.one(`select count(*) from dedup_sighting`))
}

// The same where nobody has made the next row: what comes behind the owner in the
// chunk makes it, and is not SEEN of a row that has expired.
func TestRedeliveredOwnerWithFreshCopies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 0, key: "k", payload: "a"}))
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '1 hour', expires_at = clock_timestamp()`)
	again := []rec{
		{offset: 0, key: "k", payload: "a"}, {offset: 1, key: "k", payload: "b"}, {offset: 2, key: "k", payload: "b"}, {offset: 3, key: "k", payload: "c"},
	}
	for range 2 {
		s = s.take()
		require.Equal(t, []string{"NEW", "NEW", "SEEN", "DRIFT"}, s.run(again...))
		require.Equal(t, "0/0 2/1", b.counters("k"))
		require.Equal(t, "t1:as2 DRIFT 1, t1:as2 NEW 2, t1:as2 SEEN 1", b.hours())
	}
}

// Copies that were SEEN and DRIFT of a row come again behind the end of its window
// and make a row of their own: the old one counts them no more.
func TestRepeatsRedeliveredBehindTheEndOfAWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	require.Equal(t, []string{"NEW"}, s.run(rec{offset: 0, key: "k", payload: "a"}))
	require.Equal(t, []string{"SEEN"}, s.run(rec{offset: 1, key: "k", payload: "a"}))
	copies := []rec{{offset: 0, key: "k", payload: "b"}, {offset: 1, key: "k", payload: "a"}, {offset: 2, key: "k", payload: "b"}}
	require.Equal(t, []string{"DRIFT", "SEEN", "DRIFT"}, other.run(copies...))
	require.Equal(t, "4/2", b.counters("k"))
	b.exec(`update dedup_ledger set first_seen_at = first_seen_at - interval '1 hour', expires_at = clock_timestamp();
		update dedup_sighting set row_first_seen_at = (select first_seen_at from dedup_ledger)`)
	for range 2 { // and once more: nothing moves
		other = other.take()
		require.Equal(t, []string{"NEW", "DRIFT", "SEEN"}, other.run(copies...))
		require.Equal(t, "1/0 2/1", b.counters("k"))
		require.Equal(t, "t1:as2 DRIFT 1, t1:as2 NEW 2, t1:as2 SEEN 2", b.hours())
		require.Equal(t, "3", b.one(`select count(*) from dedup_sighting`))
	}
}
