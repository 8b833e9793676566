package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func TestTraffic(t *testing.T) {
	t.Parallel()
	all := traffic()
	require.Len(t, all, distinct+resends)
	require.Equal(t, all, traffic(), "every run sends the same")
	first := map[string]int{}
	used := map[int32]bool{}
	near := 0
	for i, m := range all {
		used[m.partition] = true
		id := m.scope + " " + m.key
		at, again := first[id]
		if !again {
			first[id] = i
			require.Equal(t, ledger.New, m.want)
			continue
		}
		require.Equal(t, ledger.Seen, m.want)
		require.Equal(t, all[at].value, m.value)
		require.Equal(t, all[at].partition, m.partition, "in one partition the first stays the first")
		if i-at < 5 {
			near++
		}
	}
	require.Len(t, first, distinct)
	require.Len(t, used, partitions)
	require.Greater(t, near, resends/4)
	require.Less(t, near, resends/2)
}

func TestTheOtherParts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range traffic() {
		known[m.scope+" "+m.key] = true
	}
	again := onceMore()
	require.Len(t, again, distinct)
	for _, m := range again {
		require.True(t, known[m.scope+" "+m.key])
	}
	fresh := onePerPartition()
	require.Len(t, fresh, partitions)
	used := map[int32]bool{}
	for _, m := range fresh {
		used[m.partition] = true
		require.False(t, known[m.scope+" "+m.key])
	}
	require.Len(t, used, partitions)
	for _, e := range examples() {
		require.False(t, known[e.scope+" "+e.key])
	}
}
