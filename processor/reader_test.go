package processor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// Where the raw log was cut, later records have lower offsets: the epoch says
// which output came first.
func TestOutputsAreMergedByPosition(t *testing.T) {
	t.Parallel()
	waiting := func(ps ...ledger.Position) []told {
		var ts []told
		for _, p := range ps {
			ts = append(ts, told{origin: p})
		}
		return ts
	}
	old, cut := ledger.Position{Epoch: 1, Offset: 9}, ledger.Position{Epoch: 2, Offset: 5}
	r := &outputReader{streams: map[place]*stream{
		{cleanTopic, 0}:   {waiting: waiting(ledger.Position{Epoch: 1, Offset: 4}, cut)},
		{"duplicates", 0}: {waiting: waiting(old)},
	}}
	var got []int64
	for {
		o, ok, err := r.next(t.Context())
		require.NoError(t, err)
		if !ok {
			break
		}
		got = append(got, o.origin.Offset)
	}
	require.Equal(t, []int64{4, 9, 5}, got)
}
