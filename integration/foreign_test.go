package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestOpenTransactionWhileAnOffsetIsForeign: behind the last committed output
// another might still be committed while a transaction is open there. The
// partition waits until it is resolved, however it is; the other goes on.
// Fault card: F13.
func TestOpenTransactionWhileAnOffsetIsForeign(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 10)...)
	b.awaitOutputs(t)
	f.term(t)
	b.vacate(t)
	b.deleteOffsets(t)
	end := b.openTransaction(t, b.clean[0], 0)
	before, err := b.positionsNow(t.Context())
	require.NoError(t, err)

	b.produce(t, b.everywhere("b", 10)...)
	f = b.launch(t, 0)
	b.awaitHandledOf(t, 1)
	f.awaitReason(t, `"waiting":["`+b.raw[0]+`/0"]`)
	now, err := b.positionsNow(t.Context())
	require.NoError(t, err)
	at := place{Topic: b.raw[0]}
	require.Equal(t, before[at], now[at], "the position of the partition that waits")
	end(kgo.TryAbort)
	f.awaitReady(t)
	b.checkHandled(t)
	f.awaitMetric(t, "dedup_foreign_offsets_total", nil, func(v float64) bool { return v >= 2 })
	f.term(t)
	b.checkStopped(t)
}
