package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// briefly gives every key a window short enough for a test to outlive.
const briefly = `- {match: "*:*", window: 2s}`

// short is a message whose window is that of briefly.
func short(control string) message {
	m := order("acme:edifact", control, 5)
	m.Partition, m.Want.Window = 0, 2*time.Second
	return m
}

// awaitExpired waits until the window of a message's row has passed.
func (b *bundle) awaitExpired(t *testing.T, m message) {
	t.Helper()
	b.awaitSQL(t, `select max(expires_at) < clock_timestamp() from dedup_ledger where key = $1`, m.Want.Key)
}

// TestZombieBehindItsPoll: a filter stops (SIGSTOP) with a polled record in hand,
// its registration sent and not arrived; another takes the partition, registers
// and commits the record, the window passes; then the registration arrives and
// the filter goes on. Without the claim it would make a row of a window that
// nobody opened, and the next copy would be thrown away.
// Fault card: F14.
func TestZombieBehindItsPoll(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1, Flows: briefly})
	gate, through := b.startGate(t)
	f := b.start(t, 0, through)
	b.produce(t, short("first"), short("first"))
	b.awaitOutputs(t)

	m := short("taken")
	gate.keep(m.Want.Key)
	b.produce(t, m)
	gate.awaitKept(t)
	f.freeze(t)
	g := b.start(t, 1)
	b.awaitOutputs(t)
	b.awaitExpired(t, m)
	answer := gate.let(t)
	b.produce(t, m)
	b.checkHandled(t)
	require.Equal(t, "NEW", b.outputOf(t, 3).Status(), "the copy after the window")
	require.Contains(t, answer, "DL002", "the answer to the registration that came late")

	f.thaw(t)
	b.produce(t, short("after"))
	b.checkHandled(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}
