package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/integration/laws"
)

func rawAt(offset int64, epoch int32) *kgo.Record {
	return &kgo.Record{Topic: "raw", Partition: 1, Offset: offset, LeaderEpoch: epoch}
}

// TestGenerationsOfALogThatWasCut: what lies behind the cut in a later epoch is
// another record than what was there, and so are their outputs, which come behind
// the border. Before the cut nothing changes.
func TestGenerationsOfALogThatWasCut(t *testing.T) {
	t.Parallel()
	var g generations
	g.begin(partitionOf("raw", 1), generation{from: 10, above: 3, border: map[laws.Place]int64{partitionOf("clean", 1): 50}})
	require.Equal(t, "raw/1/9", g.raw(rawAt(9, 2)).String())
	require.Equal(t, "raw/1/12", g.raw(rawAt(12, 3)).String())
	require.Equal(t, "raw~1/1/12", g.raw(rawAt(12, 4)).String())
	told := laws.Place{Topic: "raw", Partition: 1, Offset: 12}
	require.Equal(t, "raw/1/12", g.origin(told, laws.Place{Topic: "clean", Partition: 1, Offset: 49}).String())
	require.Equal(t, "raw~1/1/12", g.origin(told, laws.Place{Topic: "clean", Partition: 1, Offset: 50}).String())
	require.Equal(t, "raw/1/9", g.origin(laws.Place{Topic: "raw", Partition: 1, Offset: 9}, laws.Place{Topic: "clean", Partition: 1, Offset: 50}).String())
	require.Equal(t, "raw~1", g.now("raw", 1))
	require.Equal(t, "raw", g.now("raw", 0))
}

// TestGenerationsOfATopicMadeAgain: every record is another one, from the first.
func TestGenerationsOfATopicMadeAgain(t *testing.T) {
	t.Parallel()
	var g generations
	g.begin(partitionOf("raw", 1), generation{from: 10, above: 3})
	g.begin(partitionOf("raw", 1), generation{above: -1, border: map[laws.Place]int64{partitionOf("clean", 1): 90}})
	require.Equal(t, "raw~2/1/0", g.raw(rawAt(0, 0)).String())
	told := laws.Place{Topic: "raw", Partition: 1, Offset: 12}
	require.Equal(t, "raw~1/1/12", g.origin(told, laws.Place{Topic: "clean", Partition: 1, Offset: 89}).String())
	require.Equal(t, []laws.Place{{Topic: "raw~2", Partition: 1, Offset: 12}, {Topic: "raw~1", Partition: 1, Offset: 12}, told}, g.named(told))
	require.ElementsMatch(t, []string{"raw", "raw~1", "raw~2"}, g.names("raw"))
}

// TestUndecided: only what nobody had decided may be gone without a trace.
func TestUndecided(t *testing.T) {
	t.Parallel()
	d := destroyed{at: partitionOf("raw", 1), from: 10, d: spot{3, 15}}
	at := func(offset int64) laws.Place { return laws.Place{Topic: "raw", Partition: 1, Offset: offset} }
	require.False(t, d.undecided(at(9), 3), "before the cut")
	require.False(t, d.undecided(at(14), 3), "decided")
	require.True(t, d.undecided(at(15), 3))
	require.True(t, d.undecided(at(12), 4))
	require.False(t, d.undecided(laws.Place{Topic: "raw~1", Partition: 1, Offset: 15}, 4), "of the next generation")
}
