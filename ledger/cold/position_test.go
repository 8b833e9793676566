package cold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func TestClaimAndOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := ledger.PositionKey{Partition: ledger.Partition{Topic: ledger.TopicID{9}, Partition: 2}, Topic: "raw-ingest.as2", Group: "dedup"}
	claim := ledger.NewClaim()
	_, found, err := b.l.Claim(t.Context(), key, claim)
	require.NoError(t, err)
	require.False(t, found)

	start, out := ledger.Position{Epoch: 3, Offset: 17}, ledger.Outputs{"clean.as2": {0: 5, 11: 7}}
	created, err := b.l.OpenPosition(t.Context(), key, claim, start, out)
	require.NoError(t, err)
	require.True(t, created)
	created, err = b.l.OpenPosition(t.Context(), key, ledger.NewClaim(), ledger.Position{}, nil)
	require.NoError(t, err)
	require.False(t, created, "made already")

	row, found, err := b.l.Claim(t.Context(), key, ledger.NewClaim())
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, ledger.PositionRow{Group: "dedup", D: start, W: start, Outputs: out}, row)

	key.Group = "other"
	held := b.one(`select claim from dedup_position`)
	_, _, err = b.l.Claim(t.Context(), key, ledger.NewClaim())
	var owned *ledger.OtherGroupError
	require.ErrorAs(t, err, &owned)
	require.Equal(t, "dedup", owned.Owner)
	require.Equal(t, held, b.one(`select claim from dedup_position`), "the owner keeps its claim")
}

func TestAPositionWithoutAKnownEpochIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := ledger.PositionKey{Partition: ledger.Partition{Topic: ledger.TopicID{9}}, Topic: "raw", Group: "dedup"}
	_, err := b.l.OpenPosition(t.Context(), key, ledger.NewClaim(), ledger.Position{Epoch: -1}, nil)
	require.ErrorIs(t, err, ledger.ErrUnavailable)
}

// Each case leaves the row other than the session believes.
func TestStaleSessionsAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]func(b *bundle, s *session){
		"another session claimed":   func(_ *bundle, s *session) { s.take() },
		"failover, other timeline":  func(b *bundle, _ *session) { b.exec(`update dedup_position set timeline = timeline + 1`) },
		"seq fell":                  func(b *bundle, _ *session) { b.exec(`update dedup_position set seq = seq - 1`) },
		"D fell by an offset":       func(b *bundle, _ *session) { b.exec(`update dedup_position set d_offset = d_offset - 1`) },
		"the row is gone (restore)": func(b *bundle, _ *session) { b.exec(`delete from dedup_position`) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			s := b.session(1, 0)
			s.run(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "a"})
			spoil(b, s)
			before := b.one(`select row(array(select p from dedup_position p), (select count(*) from dedup_ledger), array(select h from dedup_hour h))`)

			_, err := b.l.Register(t.Context(), s.chunk(rec{offset: 2, key: "k3", payload: "a"}))
			require.ErrorIs(t, err, ledger.ErrClaimLost)
			advance := s.chunk().Advances[0]
			advance.W = ledger.Position{Offset: 1}
			require.ErrorIs(t, b.l.Flush(t.Context(), []ledger.Advance{advance}), ledger.ErrClaimLost)
			require.Equal(t, before, b.one(`select row(array(select p from dedup_position p), (select count(*) from dedup_ledger), array(select h from dedup_hour h))`))
		})
	}
}

func TestOneStalePartitionRefusesTheWholeChunk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	other.take()
	c := s.chunk(rec{offset: 0, key: "k", payload: "a"})
	o := other.chunk(rec{offset: 0, key: "k2", payload: "a"})
	c.Advances = append(o.Advances, c.Advances...)
	c.Registrations = append(c.Registrations, o.Registrations...)
	_, err := b.l.Register(t.Context(), c)
	require.ErrorIs(t, err, ledger.ErrClaimLost)
	require.Equal(t, "0", b.one(`select count(*) from dedup_ledger`))
	require.Equal(t, "0", b.one(`select sum(seq) from dedup_position`))
}

func TestAdvancesInAnyOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	low, high := b.session(1, 0), b.session(2, 5)
	high.run(rec{offset: 0, key: "k0", payload: "a"})
	c, h := low.chunk(rec{offset: 0, key: "k1", payload: "a"}), high.chunk(rec{offset: 1, key: "k2", payload: "a"})
	c.Advances = append(h.Advances, c.Advances...)
	c.Registrations = append(c.Registrations, h.Registrations...)
	a, err := b.l.Register(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 1}, a.Seqs, "parallel to the advances as given")
}

func TestFlushAppliesWhatIsOurs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine, lost := b.session(1, 0), b.session(1, 1)
	for _, s := range []*session{mine, lost} {
		s.run(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "a"})
	}
	lost.take()
	advances := []ledger.Advance{lost.chunk().Advances[0], mine.chunk().Advances[0]}
	for i := range advances {
		advances[i].W, advances[i].Outputs = ledger.Position{Offset: 2}, ledger.Outputs{"clean": {0: 2}}
	}
	require.ErrorIs(t, b.l.Flush(t.Context(), advances), ledger.ErrClaimLost)
	require.Equal(t, "2 0", b.one(`select string_agg(w_offset::text, ' ' order by partition) from dedup_position`))

	advances[1].W, advances[1].Outputs = ledger.Position{Offset: 1}, ledger.Outputs{}
	require.NoError(t, b.l.Flush(t.Context(), advances[1:]))
	require.Equal(t, `2 {"clean": {"0": 2}}`, b.one(`select w_offset || ' ' || outputs from dedup_position where partition = 0`), "W never falls")
	require.Equal(t, "1", b.one(`select seq from dedup_position where partition = 0`), "a flush is no chunk")

	advances[1].W, advances[1].Outputs = ledger.Position{Offset: 3}, ledger.Outputs{"clean": {0: 2}}
	require.NoError(t, b.l.Flush(t.Context(), advances[1:]))
	require.Equal(t, "3 3", b.one(`select w_offset || ' ' || d_offset from dedup_position where partition = 0`), "D goes with W over a control record")
}

func TestWComesWithTheNextChunk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	s.w = s.d
	s.run(rec{offset: 1, key: "k", payload: "a"})
	require.Equal(t, `2 1 {"clean": {"0": 1}}`, b.one(`select concat_ws(' ', d_offset, w_offset, outputs) from dedup_position`))
	s.w = ledger.Position{}
	s.run(rec{offset: 2, key: "k", payload: "a"})
	require.Equal(t, `3 1 {"clean": {"0": 1}}`, b.one(`select concat_ws(' ', d_offset, w_offset, outputs) from dedup_position`))
}
