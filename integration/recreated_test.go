package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"dedupledger/integration/laws"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

// TestRawTopicMadeAgain: a raw topic is deleted and made again under its name
// while the filter runs. Its records are others than those that had their
// offsets before: each is judged, none is passed over for an old position.
// Fault card: F13.
func TestRawTopicMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 10)...)
	b.check(t)
	old := b.books()
	was := b.outputIDs(t)

	b.deleteTopic(t, b.raw[0])
	b.ensureTopics(t)
	admin := b.admin
	b.connect(t) // a producer holds on to the topic id it knows
	b.admin = admin
	b.mu.Lock()
	b.sent = nil
	b.mu.Unlock()
	// Fewer records than before: every offset is below the old position.
	b.produce(t, b.everywhere("b", 5)...)
	b.produce(t, b.everywhere("a", 2)...)
	books := b.books()
	b.awaitOutputCount(t, len(old)+len(books))

	f.awaitLog(t, "the raw topic was deleted and created again")
	// The older client remembers for seconds that the former topic was gone.
	topic, err := kadm.NewClient(b.client).ListTopics(t.Context(), b.raw[0])
	require.NoError(t, err)
	require.NoError(t, topic.Error())
	id := uuid.UUID(topic[b.raw[0]].ID)
	var accepted []string
	for _, s := range b.outputIDs(t) {
		if !slices.Contains(was, s) {
			accepted = append(accepted, s)
		}
	}
	require.ElementsMatch(t, b.firstIDs(t, id), accepted, "ids of what is NEW in the new topic %s", id)
	require.Equal(t, map[string]int{"NEW": 30, "SEEN": 10*2 + 5*2 + 2*2*2, "DRIFT": 2 * 3, "INVALID": 2 * 3}, b.tallies(t))
	f.term(t)
	require.EqualValues(t, len(books), b.sumOf(t, `select sum(w_offset)::bigint from dedup_position where topic_id = $1`, id))
	require.EqualValues(t, len(old), b.sumOf(t, `select sum(w_offset)::bigint from dedup_position where topic_id <> $1`, id))
}

// firstIDs are the dedup-ids of the first five copies in each partition, that of
// every second record. Its leader epoch is the record's own: a busy broker that the
// controller takes for lost for a moment leads with the next one.
func (b *bundle) firstIDs(t *testing.T, topic uuid.UUID) (ids []string) {
	t.Helper()
	records, err := laws.ReadCommitted(t.Context(), b.brokers, kadm.NewClient(b.client), b.raw...)
	require.NoError(t, err)
	for _, r := range records {
		if r.Offset < 10 && r.Offset%2 == 0 {
			ids = append(ids, uuid.NewSHA1(topic, fmt.Appendf(nil, "%d/%d/%d", r.Partition, r.LeaderEpoch, r.Offset)).String())
		}
	}
	return ids
}

func (b *bundle) deleteTopic(t *testing.T, name string) {
	t.Helper()
	gone, err := b.admin.DeleteTopics(t.Context(), name)
	require.NoError(t, err)
	require.NoError(t, gone.Error())
	until(t, "the topic is gone", func(ctx context.Context) (bool, error) {
		topics, err := b.admin.ListTopics(ctx, name)
		return err == nil && !topics.Has(name), err
	})
}

// awaitOutputCount waits until so many outputs are committed.
func (b *bundle) awaitOutputCount(t *testing.T, n int) {
	t.Helper()
	last := 0
	until(t, fmt.Sprintf("%d outputs", n), func(ctx context.Context) (bool, error) {
		records, err := laws.ReadCommitted(ctx, b.brokers, b.admin, b.outputs()...)
		last = len(records)
		return last >= n, err
	})
	require.Equal(t, n, last, "outputs")
}

// outputIDs are the dedup-ids in clean.
func (b *bundle) outputIDs(t *testing.T) (ids []string) {
	t.Helper()
	records, err := laws.ReadCommitted(t.Context(), b.brokers, b.admin, b.clean...)
	require.NoError(t, err)
	for _, r := range records {
		ids = append(ids, header(r, "dedup-id"))
	}
	return ids
}

// tallies are the outputs by status.
func (b *bundle) tallies(t *testing.T) map[string]int {
	t.Helper()
	records, err := laws.ReadCommitted(t.Context(), b.brokers, b.admin, b.outputs()...)
	require.NoError(t, err)
	n := map[string]int{}
	for _, r := range records {
		n[header(r, "dedup-status")]++
	}
	return n
}
