package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"dedupledger/integration/laws"
	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"

	"github.com/stretchr/testify/require"
)

// awaitHeld waits until /readyz is 503 and tells of a partition held for the
// reason, and returns its whole answer.
func (f *filter) awaitHeld(t *testing.T, partition, reason string) (said string) {
	t.Helper()
	f.awaitReason(t, fmt.Sprintf(`{"partition":%q,"reason":%q`, partition, reason))
	_, said, err := f.get(t.Context(), "/readyz")
	require.NoError(t, err)
	return said
}

// forget takes the records of a partition, sent from the nth on, out of the
// books: nothing may come of them.
func (b *bundle) forget(partition int32, from int) (forgotten []place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.sent[:from:from]
	for _, s := range b.sent[from:] {
		if s.Place.Partition == partition {
			forgotten = append(forgotten, s.Place)
			continue
		}
		kept = append(kept, s)
	}
	b.sent = kept
	return forgotten
}

// forgetPlaces takes records out of the books by their places.
func (b *bundle) forgetPlaces(gone func(place) bool) (forgotten []place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = slices.DeleteFunc(b.sent, func(s sent) bool {
		if gone(s.Place) {
			forgotten = append(forgotten, s.Place)
		}
		return gone(s.Place)
	})
	return forgotten
}

// judgeOutputs judges what came of the records in the books, where raw holds
// others that are not to be handled: law 1 finds any output of those.
func (b *bundle) judgeOutputs(t *testing.T) {
	t.Helper()
	o := b.observeOnly(t)
	faults := slices.Concat(laws.LawOne(o), laws.LawTwo(o), laws.NothingLost(o), laws.Verdicts(o), laws.OrderKept(o), laws.Untouched(o), laws.HoursClose(o))
	require.Empty(t, faults)
}

func (b *bundle) observeOnly(t *testing.T) *observation {
	t.Helper()
	o, err := b.observation(t.Context())
	require.NoError(t, err)
	return o
}

// observation is observe without the books' comparison with raw.
func (b *bundle) observation(ctx context.Context) (*observation, error) {
	o := laws.NewObservation()
	o.Taken = time.Now()
	for i, name := range b.raw {
		o.CleanOf[name] = b.clean[i]
	}
	books := b.books()
	for i := range books {
		o.Sent[books[i].Place] = &books[i]
	}
	for _, step := range []func(context.Context, *observation) error{b.observeOutputs, b.observeHours, b.observePositions} {
		if err := step(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// TestOutputsGone: what must be learned is not in the outputs any more. The
// partition is held and says why; the other learns and goes on.
func TestOutputsGone(t *testing.T) {
	t.Parallel()
	b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 20)...)
	b.awaitOutputs(t)
	copied := b.copyData(t, pg)
	b.forgotten(t)
	f.term(t)
	b.putBack(t, pg, copied)
	ends, err := b.admin.ListEndOffsets(t.Context(), b.clean[0])
	require.NoError(t, err)
	end, ok := ends.Lookup(b.clean[0], 0)
	require.True(t, ok)
	b.deleteRecords(t, b.clean[0], 0, end.Offset-1)

	sent := len(b.books())
	b.produce(t, append(b.everywhere("b", 25), b.everywhere("a", 20)...)...)
	f = b.launch(t, 0)
	said := f.awaitHeld(t, b.raw[0]+"/0", "outputs_gone")
	require.Contains(t, said, b.clean[0]+"/0 starts at")
	heldBack := b.forget(0, sent)
	require.NotEmpty(t, heldBack)
	b.awaitHandledOf(t, 1)
	f.awaitMetric(t, "dedup_held_partitions", []string{`reason="outputs_gone"`}, func(v float64) bool { return v == 1 })
	f.awaitMetric(t, "dedup_learned_records_total", nil, func(v float64) bool { return v > 0 })
	f.term(t)
	b.nothingCameOf(t, heldBack)
}

// TestLogStartBeyondThePosition: retention has taken raw records that were never
// read. A gap with exact ends is recorded, told once and counted, and the
// partition goes on behind it, once more after a kill.
// Fault card: F12.
func TestLogStartBeyondThePosition(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 5)...)
	b.awaitOutputs(t)
	f.term(t)
	from := b.sumOf(t, `select w_offset from dedup_position where partition = 0`)
	b.produce(t, b.everywhere("b", 10)...)
	b.deleteRecords(t, b.raw[0], 0, from+7)
	gone := b.forgetPlaces(func(w place) bool { return w.Partition == 0 && w.Offset >= from && w.Offset < from+7 })
	require.Len(t, gone, 7)

	f = b.start(t, 0)
	f.awaitMetric(t, "dedup_gap_records_total", []string{`topic="` + b.raw[0] + `"`}, func(v float64) bool { return v == 7 })
	f.awaitMetric(t, "dedup_gap_records_unacknowledged", []string{`topic="` + b.raw[0] + `"`}, func(v float64) bool { return v == 7 })
	f.awaitLog(t, "records were deleted before they were read")
	b.awaitHandledOf(t, 0)
	f.kill(t)
	f = b.start(t, 0)
	b.produce(t, b.everywhere("b", 12)...) // copies of what was deleted are NEW: nobody has decided about it
	b.awaitHandledOf(t, 0)
	b.awaitHandledOf(t, 1)
	f.term(t)
	b.nothingCameOf(t, gone)
	b.judgeOutputs(t)
	require.Equal(t, fmt.Sprintf("0 log_start %d-%d", from, from+7),
		ask[string](t, b, `select string_agg(partition || ' ' || kind || ' ' || from_offset || '-' || to_offset, ', ') from dedup_gap`))
}

// TestTwoGroups: a raw topic has one consumer group. Another is refused and says
// whose it is; the first goes on.
func TestTwoGroups(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 10)...)
	b.awaitOutputs(t)
	b.allow(t, devservices.UserFilter, acl.Member("other-"+b.id)...)
	other := b.launch(t, 0, "DEDUP_KAFKA_GROUP=other-"+b.id)
	for p := range b.partitions {
		said := other.awaitHeld(t, fmt.Sprintf("%s/%d", b.raw[0], p), "group")
		require.Contains(t, said, "filtered by group")
		require.Contains(t, said, b.group)
	}
	other.awaitMetric(t, "dedup_held_partitions", []string{`reason="group"`}, func(v float64) bool { return v == 2 })
	b.produce(t, b.everywhere("b", 10)...)
	b.check(t)
	f.term(t)
	b.produce(t, b.everywhere("c", 10)...)
	other.awaitHeld(t, b.raw[0]+"/0", "group")
	f = b.start(t, 0)
	b.check(t)
	other.term(t)
	f.term(t)
	b.checkStopped(t)
}

// awaitHandledOf is awaitHandled for one partition.
func (b *bundle) awaitHandledOf(t *testing.T, partition int32) {
	t.Helper()
	k := b.track(t)
	defer k.client.Close()
	k.await(t, func() (missing int, ok bool) {
		for _, s := range b.books() {
			if s.Place.Partition == partition && k.seen[s.Place] == 0 {
				missing++
			}
		}
		return missing, missing == 0
	})
}

// nothingCameOf requires that none of the records has an output.
func (b *bundle) nothingCameOf(t *testing.T, raw []place) {
	t.Helper()
	for _, out := range b.observeOnly(t).Outputs {
		require.False(t, slices.Contains(raw, out.Origin), "%s of %s, which is held", out, out.Origin)
	}
}
