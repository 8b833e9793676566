package cold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// known is what the session knows of the row.
func (s *session) known() *ledger.Advance {
	return &ledger.Advance{Partition: s.key.Partition, Claim: s.claim, Seq: s.seq, D: s.d, W: s.w}
}

func (s *session) gap(kind ledger.GapKind, from, to int64) bool {
	s.b.Helper()
	fresh, err := s.b.l.RecordGap(s.b.Context(), s.known(), &ledger.Gap{
		Partition: s.key.Partition, Kind: kind,
		Range: ledger.Range{From: ledger.Position{Offset: from}, To: ledger.Position{Offset: to}},
	})
	require.NoError(s.b, err)
	return fresh
}

// A record was decided and lies in a gap: it was never committed and never comes
// again. The next copy closes its row and is NEW, once, whichever partition it
// comes through; rows beside the gap stay what they are.
func TestOrphan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(2, 0)
	require.Equal(t, []string{"NEW", "NEW", "NEW", "SEEN"}, s.run(
		rec{offset: 0, key: "before", payload: "a"}, rec{offset: 1, key: "k", payload: "a"},
		rec{offset: 2, key: "behind", payload: "a"}, rec{offset: 3, key: "k", payload: "a"}))
	require.Equal(t, []string{"SEEN"}, other.run(rec{offset: 0, key: "k", payload: "a"}), "before the gap is known")
	require.True(t, s.gap(ledger.GapEpoch, 1, 2))
	require.False(t, s.gap(ledger.GapEpoch, 1, 2), "once more")

	again := []rec{
		{offset: 1, key: "k", payload: "b"},
		{offset: 2, key: "k", payload: "b"},
		{offset: 3, key: "before", payload: "a"},
		{offset: 4, key: "behind", payload: "a"},
	}
	a := other.register(again...)
	require.Equal(t, []string{"NEW", "SEEN", "SEEN", "SEEN"}, other.verdicts(a, again...))
	for i := range again {
		require.Equal(t, i == 0, a.Results[i].Orphan)
	}
	require.Equal(t, "orphan", b.one(`select closed_by from dedup_ledger where key = 'k' and origin_offset = 1 and origin_topic = $1`, s.key.Partition.Topic.String()))
	require.Equal(t, "1", b.one(`select count(*) from dedup_ledger where key = 'k' and closed_at is null`))
	require.Equal(t, "2/0 1/0", b.counters("k"))

	// The batch comes again: the row that it made decides, and nothing is closed.
	other = other.take()
	a = other.register(again...)
	require.Equal(t, []string{"NEW", "SEEN", "SEEN", "SEEN"}, other.verdicts(a, again...))
	require.False(t, a.Results[0].Orphan)
}

// A copy that was judged and thrown back before the gap was known is the first
// when it comes again, and its account moves.
func TestOrphanOfARedelivery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	copies := []rec{{offset: 0, key: "k", payload: "b"}, {offset: 1, key: "k", payload: "b"}}
	require.Equal(t, []string{"DRIFT", "DRIFT"}, other.run(copies...))
	s.gap(ledger.GapSkip, 0, 1)
	for range 2 {
		other = other.take()
		require.Equal(t, []string{"NEW", "SEEN"}, other.run(copies...))
		require.Equal(t, "t1:as2 NEW 2, t1:as2 SEEN 1", b.hours())
		require.Equal(t, "1", b.one(`select count(*) from dedup_sighting`))
	}
}

// A gap of another partition, topic or epoch makes no orphan.
func TestNoOrphanElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, beside, other := b.session(1, 0), b.session(1, 1), b.session(2, 0)
	s.run(rec{offset: 5, key: "k", payload: "a"})
	beside.gap(ledger.GapEpoch, 0, 9)
	other.gap(ledger.GapEpoch, 0, 9)
	_, err := b.l.RecordGap(t.Context(), s.known(), &ledger.Gap{Partition: s.key.Partition, Kind: ledger.GapEpoch, Range: ledger.Range{
		From: ledger.Position{Epoch: 1}, To: ledger.Position{Epoch: 1, Offset: 9},
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"SEEN"}, s.run(rec{offset: 6, key: "k", payload: "a"}))
}

// A gap of the log start takes W and D behind it; another kind moves neither; a
// session that lost its claim writes nothing.
func TestRecordGap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 1, key: "k", payload: "a"})
	s.gap(ledger.GapEpoch, 2, 4)
	require.Equal(t, "2 0", b.one(`select d_offset || ' ' || w_offset from dedup_position`))
	s.gap(ledger.GapLogStart, 0, 7)
	require.Equal(t, "7 7", b.one(`select d_offset || ' ' || w_offset from dedup_position`))
	s.take()
	_, err := b.l.RecordGap(t.Context(), s.known(), &ledger.Gap{Partition: s.key.Partition, Kind: ledger.GapLogStart})
	require.ErrorIs(t, err, ledger.ErrClaimLost)
	require.Equal(t, "2", b.one(`select count(*) from dedup_gap`))
}

// What a session says of a held partition counts while its claim does.
func TestHold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	require.True(t, s.hold("outputs_gone"))
	held := `select coalesce(held || ' ' || (held_claim = claim), '') from dedup_position`
	require.Equal(t, "outputs_gone true", b.one(held))
	n := s.take()
	require.Equal(t, "outputs_gone false", b.one(held))
	require.False(t, s.hold("topics"))
	require.Equal(t, "outputs_gone false", b.one(held))
	require.True(t, n.hold("log_end"))
	require.Equal(t, "log_end true", b.one(held))
}

func (s *session) hold(reason string) (kept bool) {
	s.b.Helper()
	kept, err := s.b.l.Hold(s.b.Context(), s.key.Partition, s.claim, reason, "clean/0 starts at 3")
	require.NoError(s.b, err)
	return kept
}

// Open gaps are told by raw topic; those that a command made and those that were
// acknowledged are not open, and their topic stays told.
func TestOpenGaps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	open := func() map[string]int64 {
		all, err := b.l.OpenGaps(t.Context())
		require.NoError(t, err)
		return all
	}
	require.Empty(t, open())
	s, other := b.session(1, 0), b.session(1, 1)
	s.gap(ledger.GapLogStart, 0, 7)
	other.gap(ledger.GapEpoch, 2, 4)
	other.gap(ledger.GapSkip, 10, 90)
	require.Equal(t, map[string]int64{s.key.Topic: 9}, open())
	b.exec(`update dedup_gap set acknowledged_at = now()`)
	require.Equal(t, map[string]int64{s.key.Topic: 0}, open())
}
