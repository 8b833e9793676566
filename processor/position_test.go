package processor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func at(epoch int32, offset int64) ledger.Position {
	return ledger.Position{Epoch: epoch, Offset: offset}
}

// TestDecideStart is the table of ARCHITECTURE §4, row by row.
func TestDecideStart(t *testing.T) {
	t.Parallel()
	row := func(seq int64, d, w ledger.Position) *ledger.PositionRow {
		return &ledger.PositionRow{Seq: seq, D: d, W: w}
	}
	ours := func(p ledger.Position, seq int64) groupOffset {
		return groupOffset{found: true, marked: true, ours: true, at: p, seq: seq}
	}
	foreign := groupOffset{found: true, at: at(-1, 3)}
	cases := []struct {
		name string
		g    groupOffset
		row  *ledger.PositionRow
		want start
	}{
		{"ours, ahead of W", ours(at(0, 9), 4), row(4, at(0, 12), at(0, 5)), start{kind: startAt, at: at(0, 9)}},
		{"ours, behind W", ours(at(0, 9), 4), row(6, at(0, 12), at(0, 11)), start{kind: startAt, at: at(0, 11)}},
		{"ours, epoch decides before offset", ours(at(1, 2), 4), row(4, at(1, 3), at(0, 7)), start{kind: startAt, at: at(1, 2)}},
		{"ours, D behind: Postgres lost commits", ours(at(0, 9), 4), row(4, at(0, 8), at(0, 5)), start{kind: startLearn, from: at(0, 5), at: at(0, 9), seq: 4}},
		{"ours, seq behind although D is not", ours(at(0, 9), 4), row(3, at(0, 9), at(0, 5)), start{kind: startLearn, from: at(0, 5), at: at(0, 9), seq: 4}},
		{"another tool set it", foreign, row(4, at(0, 12), at(0, 5)), start{kind: startVerify, from: at(0, 5)}},
		{"another tool set it to where we were", groupOffset{found: true, at: at(0, 9)}, row(4, at(0, 12), at(0, 5)), start{kind: startVerify, from: at(0, 5)}},
		{"a marker that does not name this offset", groupOffset{found: true, marked: true, at: at(0, 9)}, row(4, at(0, 12), at(0, 5)), start{kind: startVerify, from: at(0, 5)}},
		{"deleted", groupOffset{}, row(4, at(0, 12), at(0, 5)), start{kind: startVerify, from: at(0, 5)}},
		{"no row, ours", ours(at(0, 9), 4), nil, start{kind: openLearn, at: at(0, 9), seq: 4}},
		{"no row, plain offset", foreign, nil, start{kind: openAt, at: at(-1, 3)}},
		{"no row, marker of another ledger", groupOffset{found: true, marked: true, at: at(0, 9)}, nil, start{kind: openAtStart}},
		{"nothing at all", groupOffset{}, nil, start{kind: openAtStart}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, decideStart(c.g, c.row))
		})
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	require.True(t, below(at(0, 4), at(0, 5)))
	require.False(t, below(at(0, 5), at(0, 5)))
	require.False(t, below(at(1, 0), at(0, 5)), "a newer epoch is a new history")
}

func TestEpochAt(t *testing.T) {
	t.Parallel()
	es := epochEnds{at(0, 10), at(2, 15), at(3, 15)}
	for offset, want := range map[int64]int32{0: 0, 9: 0, 10: 2, 14: 2, 15: 3, 99: 3} {
		require.Equal(t, want, es.at(offset), "offset %d", offset)
	}
}
