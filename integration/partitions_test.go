package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

// grow adds partitions to topics, as kafka-topics.sh --alter does, and returns
// when the brokers tell of them.
func (b *bundle) grow(t *testing.T, to int, names ...string) {
	t.Helper()
	grown, err := b.admin.UpdatePartitions(t.Context(), to, names...)
	require.NoError(t, err)
	require.NoError(t, grown.Error())
	until(t, fmt.Sprintf("%v have %d partitions", names, to), func(ctx context.Context) (bool, error) {
		all, err := b.admin.ListTopics(kadm.WithAuthorizedOps(ctx), names...) // past the client's cache
		if err == nil {
			err = all.Error()
		}
		for _, topic := range all {
			if len(topic.Partitions) != to {
				return false, err
			}
		}
		return true, err
	})
	admin := b.admin // deletes the topics at the end, when the new client is closed
	b.connect(t)     // a producer that knows them
	b.admin = admin
}

// intoNew are, for each partition from the nth on, repeats of what everywhere has
// sent under the name, and a message of its own.
func (b *bundle) intoNew(name string, from, to int) (messages []message) {
	again := b.everywhere(name, 3)
	for p := from; p < to; p++ {
		messages = append(messages, in(p, append(again, order("t9:edifact", fmt.Sprintf("%sn%d", name, p), 5))...)...)
	}
	return messages
}

// TestPartitionsGrowOutputsFirst: the order of docs/operations.md. The filter runs
// under load all the time, and what was written to new raw partitions before it
// knew of them is filtered from the first record. One session: another one that
// joins between the two steps would see counts that differ.
func TestPartitionsGrowOutputsFirst(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Partitions: 4})
	f := b.start(t, 0, "DEDUP_PROCESSOR_SESSIONS=1")
	b.produce(t, b.everywhere("a", 3)...)
	l := b.startLoad(t, rng, "l", 4)
	l.passMore(t, 100)
	b.grow(t, 8, b.outputs()...)
	l.passMore(t, 100)
	b.grow(t, 8, b.raw...)
	b.produce(t, b.intoNew("a", 4, 8)...)
	f.awaitPartitions(t, 8)
	l.passMore(t, 100)
	l.end(t)
	b.partitions = 8
	l = b.startLoad(t, rng, "m", 4)
	l.passMore(t, 200)
	l.end(t)
	b.check(t) // partition by partition, in order
	require.NotContains(t, f.text(t), "another number of partitions")
	f.term(t)
	b.checkStopped(t)
}

// TestPartitionsGrowRawFirst: the wrong order. Outputs go by record key until the
// clean topic has grown too; the log has the command, once; nothing is lost or
// doubled.
func TestPartitionsGrowRawFirst(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Partitions: 4})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 3)...)
	l := b.startLoad(t, rng, "l", 4)
	l.passMore(t, 100)
	b.grow(t, 8, b.raw...)
	b.produce(t, b.intoNew("a", 4, 8)...)
	f.awaitPartitions(t, 8)
	f.awaitLog(t, "kafka-topics.sh --bootstrap-server "+b.entry()+" --alter --topic "+b.clean[0]+" --partitions 8")
	for _, shared := range []string{b.duplicates, b.deadLetter} {
		f.awaitLog(t, "kafka-topics.sh --bootstrap-server "+b.entry()+" --alter --topic "+shared+" --partitions 8")
	}
	l.passMore(t, 200)
	l.end(t)
	b.awaitOutputs(t)
	b.judgeUnordered(t)
	require.Equal(t, 1, strings.Count(f.text(t), "another number of partitions"), "said once")
	b.goneByKey(t, 4)

	// The repair, and the next start: by partition again.
	b.grow(t, 8, b.outputs()...)
	f.term(t)
	f = b.start(t, 0)
	already := len(b.books())
	b.partitions = 8
	b.produce(t, b.everywhere("b", 3)...)
	b.awaitOutputs(t)
	b.judgeUnordered(t)
	b.inTheirPartitions(t, already)
	require.NotContains(t, f.text(t), "another number of partitions")
	f.term(t)
}

// goneByKey: the clean records of raw partitions from the nth on, where clean has
// no partition of that number, lie in one partition for each record key.
func (b *bundle) goneByKey(t *testing.T, from int32) {
	t.Helper()
	of := map[string]int32{}
	for _, out := range b.observeOnly(t).Outputs {
		if out.Kind != laws.Clean || out.Origin.Partition < from {
			continue
		}
		key := string(out.Record.Key)
		if at, known := of[key]; known {
			require.Equal(t, at, out.Record.Partition, "%s in %s", out.Origin, out)
		}
		of[key] = out.Record.Partition
	}
	require.NotEmpty(t, of)
}

// inTheirPartitions: the clean records of what was sent from the nth on lie in
// their raw partitions.
func (b *bundle) inTheirPartitions(t *testing.T, from int) {
	t.Helper()
	late := map[place]bool{}
	for _, s := range b.books()[from:] {
		late[s.Place] = true
	}
	for _, out := range b.observeOnly(t).Outputs {
		if out.Kind == laws.Clean && late[out.Origin] {
			require.Equal(t, out.Origin.Partition, out.Record.Partition, "%s in %s", out.Origin, out)
		}
	}
}
