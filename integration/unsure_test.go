package integration

import (
	"testing"
)

// TestCommitAnsweredWithAnError: EndTxn is applied and answered with
// UNKNOWN_SERVER_ERROR. The client then says "not committed" and stands at the
// offsets it remembers; only the coordinator knows that the batch is committed.
func TestCommitAnsweredWithAnError(t *testing.T) {
	t.Parallel()
	p := startLiar(t, "dedup-")
	b := newBundle(t, setup{Partitions: 2, Kafka: p.addr()})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 10)...)
	b.awaitOutputs(t)
	for _, lies := range []int{1, 3} {
		p.lie(lies)
		for range lies {
			b.produce(t, b.everywhere("b", 10)...)
			p.awaitLie(t)
		}
		b.checkHandled(t)
	}
	// Outputs of a commit whose answer was a lie can be seen before the filter has
	// asked; what comes behind them cannot.
	b.produce(t, b.everywhere("c", 10)...)
	b.checkHandled(t)
	f.term(t)
	b.checkStopped(t)
}

// TestKilledBehindACommitAnsweredWithAnError: the same, and the filter is killed
// before it has asked.
// Fault card: F16.
func TestKilledBehindACommitAnsweredWithAnError(t *testing.T) {
	t.Parallel()
	p := startLiar(t, "dedup-")
	b := newBundle(t, setup{Partitions: 2, Kafka: p.addr()})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 10)...)
	b.awaitOutputs(t)
	p.lie(1)
	b.produce(t, b.everywhere("b", 10)...)
	p.awaitLie(t)
	f.kill(t)
	b.produce(t, b.everywhere("c", 10)...)
	f = b.start(t, 0)
	b.checkHandled(t)
	f.term(t)
	b.checkStopped(t)
}
