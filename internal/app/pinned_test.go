package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

// at is what brokers list of two partitions.
func at(zero, one int64) kadm.ListedOffsets {
	return kadm.ListedOffsets{"raw": {
		0: {Topic: "raw", Partition: 0, Offset: zero},
		1: {Topic: "raw", Partition: 1, Offset: one},
	}}
}

// Only a last stable offset that stays, with records behind it, is pinned: not a
// partition at rest, nor one under transactions that end.
// Fault card: F13.
func TestPinned(t *testing.T) {
	t.Parallel()
	p, clock := newPinned(), time.Now()
	p.now = func() time.Time { return clock }
	parts := []rawPartition{{"raw", 0}, {"raw", 1}}
	for range 3 {
		p.look(parts, at(10, 20), at(15, 20))
		clock = clock.Add(time.Minute)
	}
	require.Equal(t, []string{"raw/0: a transaction that is open at offset 10 keeps 5 behind it from being read, for 3m0s"}, p.longerThan(time.Minute))
	require.Empty(t, p.longerThan(3*time.Minute))

	p.look(parts, at(12, 20), at(18, 25))
	require.Empty(t, p.longerThan(0), "both have just begun")
	clock = clock.Add(time.Minute)
	p.look(parts, at(14, 20), at(18, 25))
	clock = clock.Add(time.Second)
	require.Equal(t, []string{"raw/1: a transaction that is open at offset 20 keeps 5 behind it from being read, for 1m1s"}, p.longerThan(time.Minute))
	p.look(parts[:1], at(14, 20), at(18, 25))
	require.Empty(t, p.longerThan(time.Minute), "the partition went to another process")
}

func TestParsePartition(t *testing.T) {
	t.Parallel()
	w, err := parsePartition("raw-ingest.a/b/7")
	require.NoError(t, err)
	require.Equal(t, rawPartition{"raw-ingest.a/b", 7}, w)
	for _, bad := range []string{"", "7", "raw/", "raw/x"} {
		_, err := parsePartition(bad)
		require.Error(t, err, bad)
	}
}
