package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// copies are n resends of the same message, and after every second one a changed
// one, over both partitions.
func copies(id string, n int) (messages []message) {
	for i := range n {
		m := order("acme:edifact", id, 5)
		m.Partition = int32(i % 2)
		messages = append(messages, m)
		if i%2 == 1 {
			m = order("acme:edifact", id, 6+i%3)
			m.Partition = int32(i / 2 % 2)
			messages = append(messages, m)
		}
	}
	return messages
}

// full counts the outputs of a status that carry their payload, and those that
// do not.
func (b *bundle) full(t *testing.T, status string) (with, without int) {
	t.Helper()
	for _, out := range b.observeOnly(t).Outputs {
		if out.Status() != status {
			continue
		}
		if header(out.Record, "dedup-payload") == "omitted" {
			require.Nil(t, out.Record.Value)
			without++
			continue
		}
		require.NotEmpty(t, out.Record.Value)
		with++
	}
	return with, without
}

// TestPayloadCopies: the first repeats of a row carry their payload, and so do
// the first changed ones, however many plain ones came before; the same under
// kills between registration and commit, when everything comes again behind what
// was counted meanwhile.
func TestPayloadCopies(t *testing.T) {
	t.Parallel()
	k := startStopper(t)
	for name, moment := range map[string]int16{"killed, registered": beforeProduce, "killed, produced": beforeOffsets, "killed, offsets in": beforeEnd} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const allowed = 4
			env := []string{fmt.Sprintf("DEDUP_DUPLICATES_PAYLOAD_COPIES=%d", allowed)}
			b := newBundle(t, setup{Partitions: 2, Kafka: k.addr()})
			first := order("acme:edifact", "x", 5)
			first.Partition = 0
			b.produce(t, first)
			f := b.start(t, 0, env...)
			b.awaitOutputs(t)
			s := k.stop(t, b, 0, moment)
			b.produce(t, copies("x", 6)...)
			s.await(t)
			b.produce(t, copies("x", 6)...)
			f.kill(t)
			close(s.free)
			f = b.start(t, 0, env...)
			b.produce(t, copies("x", 4)...)
			b.check(t)
			with, without := b.full(t, "SEEN")
			require.Equal(t, [2]int{allowed, 16 - allowed}, [2]int{with, without}, "plain repeats with and without payload")
			with, without = b.full(t, "DRIFT")
			require.Equal(t, [2]int{allowed, 8 - allowed}, [2]int{with, without}, "changed repeats with and without payload")
			f.term(t)
			b.checkStopped(t)
		})
	}
}

// TestNoPayloadCopies: 0 keeps payloads out of duplicates altogether.
func TestNoPayloadCopies(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	b.produce(t, copies("x", 2)...)
	f := b.start(t, 0, "DEDUP_DUPLICATES_PAYLOAD_COPIES=0")
	b.check(t)
	for status, n := range map[string]int{"SEEN": 1, "DRIFT": 1} {
		with, without := b.full(t, status)
		require.Equal(t, [2]int{0, n}, [2]int{with, without}, status)
	}
	f.term(t)
	b.checkStopped(t)
}
