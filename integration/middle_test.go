package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInABatch: what becomes of a batch whose filter is killed or frozen between
// its registration and its commit. The tests share a broker that can stop a
// filter at a moment.
// Fault cards: F16, F24.
func TestInABatch(t *testing.T) {
	t.Parallel()
	k := startStopper(t)
	for name, moment := range map[string]int16{
		"killed, registered": beforeProduce,
		"killed, produced":   beforeOffsets,
		"killed, offsets in": beforeEnd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, setup{Partitions: 2, Kafka: k.addr()})
			b.killedAt(t, k, moment)
			f := b.start(t, 0)
			b.produce(t, b.everywhere("c", 5)...)
			b.checkHandled(t)
			f.term(t)
			b.checkStopped(t)
		})
	}
	for name, r := range resets {
		t.Run("killed, then reset "+name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, setup{Partitions: 2, Kafka: k.addr()})
			b.killedAt(t, k, beforeEnd)
			b.goesOnBehind(t, r, r.told)
		})
	}
	t.Run("killed, then PostgreSQL put back", func(t *testing.T) {
		t.Parallel()
		killedAndPutBack(t, k)
	})
	for name, moment := range map[string]int16{
		"registered": beforeProduce,
		"produced":   beforeOffsets,
		"offsets in": beforeEnd,
	} {
		t.Run("frozen and replaced, "+name, func(t *testing.T) {
			t.Parallel()
			frozenAndReplaced(t, k, moment)
		})
	}
	t.Run("resent meanwhile", func(t *testing.T) {
		t.Parallel()
		resentMeanwhile(t, k)
	})
}

// killedAt leaves a filter killed (SIGKILL) at a moment of its batch.
func (b *bundle) killedAt(t *testing.T, k *stopper, moment int16) {
	t.Helper()
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 20)...)
	b.awaitOutputs(t)
	s := k.stop(t, b, 0, moment)
	b.produce(t, b.everywhere("b", 20)...)
	s.await(t)
	f.kill(t)
	close(s.free) // what it left unsent finds its connection closed
}

// killedAndPutBack: then PostgreSQL forgets the registered batch and what was
// committed before it.
func killedAndPutBack(t *testing.T, k *stopper) {
	t.Helper()
	b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2, Kafka: k.addr()})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 20)...)
	b.awaitOutputs(t)
	copied := b.copyData(t, pg)
	lost := b.forgotten(t)
	s := k.stop(t, b, 0, beforeEnd)
	b.produce(t, b.everywhere("c", 20)...)
	s.await(t)
	f.kill(t)
	close(s.free)
	b.putBack(t, pg, copied)
	b.produce(t, append(b.everywhere("c", 25), b.everywhere("b", 5)...)...)
	b.judgeLearned(t, b.start(t, 0), lost)
}

// frozenAndReplaced: another takes the partition, registers the same records and
// commits them, and the window passes. When the first goes on, its transaction
// must not commit. Where its offsets are in the transaction already, the other
// waits until the broker has ended that for its age: it has another identity, so
// it fences nobody.
func frozenAndReplaced(t *testing.T, k *stopper, moment int16) {
	t.Helper()
	b := newBundle(t, setup{Partitions: 1, Flows: briefly, Kafka: k.addr()})
	soon := []string{"DEDUP_KAFKA_TRANSACTION_TIMEOUT=12s", "DEDUP_KAFKA_REBALANCE_TIMEOUT=6s"}
	f := b.start(t, 0, soon...)
	b.produce(t, short("first"), short("first"))
	b.awaitOutputs(t)
	s := k.stop(t, b, 0, moment)
	m := short("taken")
	b.produce(t, m, m)
	s.await(t)
	f.freeze(t)
	g := b.start(t, 1, soon...)
	// Outputs of the open transaction keep what lies behind them from readers.
	g.awaitMetric(t, "dedup_messages_total", nil, func(v float64) bool { return v >= 2 })
	b.awaitExpired(t, m)
	b.produce(t, m)
	g.awaitMetric(t, "dedup_messages_total", nil, func(v float64) bool { return v >= 3 })
	f.thaw(t)
	close(s.free)
	b.produce(t, short("after"))
	b.checkHandled(t)
	require.Equal(t, "NEW", b.outputOf(t, 4).Status(), "the copy after the window")
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}
