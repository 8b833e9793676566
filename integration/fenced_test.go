package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwoProcessesWithOneSlot: the younger has the older's identity, so the older
// is fenced. It ends with a sentence, and nothing is doubled or lost.
func TestTwoProcessesWithOneSlot(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0, "DEDUP_PROCESSOR_BATCH_RECORDS=50")
	b.produce(t, b.everywhere("a", 200)...)
	k := b.track(t)
	k.awaitCount(t, 50)
	g := b.launch(t, 0)
	code, log := f.ends(t)
	require.Equal(t, 1, code, "the older one's exit code")
	said := log[strings.LastIndex(log, "dedup: "):]
	t.Logf("exit %d: %s", code, strings.TrimSpace(said))
	require.Contains(t, said, "another process has the same processor.slot and has taken this one's place; give each process a slot of its own")
	g.awaitReady(t)
	b.produce(t, b.everywhere("b", 20)...)
	b.checkHandled(t)
	g.term(t)
	b.checkStopped(t)
}
