package cold_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// chunkOf lays the records of several sessions into one chunk, in that order.
func chunkOf(sessions []*session, records ...[]rec) *ledger.Chunk {
	all := &ledger.Chunk{Gate: ledger.GateKafka}
	for i, s := range sessions {
		c := s.chunk(records[i]...)
		all.Registrations, all.Advances = append(all.Registrations, c.Registrations...), append(all.Advances, c.Advances...)
	}
	return all
}

func (b *bundle) registerAll(sessions []*session, records ...[]rec) *ledger.Answer {
	b.Helper()
	c := chunkOf(sessions, records...)
	a, err := b.l.Register(b.Context(), c)
	require.NoError(b, err)
	for i, s := range sessions {
		s.seq, s.d = a.Seqs[i], c.Advances[i].NewD
	}
	return a
}

func numbers(a *ledger.Answer) (all []string) {
	for _, r := range a.Results {
		all = append(all, fmt.Sprintf("%d/%d", r.Repeat, r.Copy))
	}
	return all
}

// TestNumbersStay: which repeat of its row a record is does not change when it
// comes again, in the same company, alone, or behind others; a changed payload
// counts among the changed ones.
func TestNumbersStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cold.Config{"as usual": {}, "without statement cache": {NoStatementCache: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.l = b.open(c)
			numbersStay(b)
		})
	}
}

func numbersStay(b *bundle) {
	t := b.TB
	zero, one := b.session(1, 0), b.session(1, 1)
	mixed := func(from int64, n int) (rs []rec) {
		for i := range n {
			r := rec{offset: from + int64(i), key: "k", payload: "a"}
			if i%3 == 2 {
				r.payload = fmt.Sprintf("other %d", i)
			}
			rs = append(rs, r)
		}
		return rs
	}
	// Partition 1 comes before partition 0 in the poll; the numbers go by origin.
	first, second := mixed(0, 6), mixed(0, 4)
	require.Equal(t, []string{"0/0"}, numbers(zero.register(rec{offset: 0, key: "k", payload: "a"})))
	for i := range first {
		first[i].offset++
	}
	a := b.registerAll([]*session{one, zero}, second, first)
	of1 := []string{"7/5", "8/6", "9/3", "10/7"}
	of0 := []string{"1/1", "2/2", "3/1", "4/3", "5/4", "6/2"}
	require.Equal(t, append(append([]string{}, of1...), of0...), numbers(a))
	require.Equal(t, "10/3", b.counters("k"))

	// One more before they come again.
	require.Equal(t, []string{"11/8"}, numbers(one.register(rec{offset: 4, key: "k", payload: "a"})))
	zero, one = zero.take(), one.take()
	require.Equal(t, of1, numbers(one.register(second...)))
	require.Equal(t, of0, numbers(zero.register(first...)))
	require.Equal(t, of0[3:5], numbers(zero.register(first[3:5]...)))
	a = b.registerAll([]*session{zero, one}, first, second)
	require.Equal(t, append(append([]string{}, of0...), of1...), numbers(a))
	require.Equal(t, "11/3", b.counters("k"), "none was counted twice")
}

// TestNumbersBehindTheSightings: one whose sighting was not kept is a late one.
func TestNumbersBehindTheSightings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	var rs []rec
	for i := range 120 {
		rs = append(rs, rec{offset: int64(i), key: "k", payload: "a"})
	}
	first := numbers(s.register(rs...))
	require.Equal(t, "119/119", first[119])
	again := numbers(s.take().register(rs...))
	require.Equal(t, first[:101], again[:101])
	for _, n := range again[101:] {
		require.Equal(t, "119/119", n)
	}
}
