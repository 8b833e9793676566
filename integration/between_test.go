package integration

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBetweenRegistrationAndCommit: 500 records are registered by a statement that
// takes very long, and meanwhile the filter is told to stop, or loses a partition
// to another.
// Fault cards: F04, F14.
func TestBetweenRegistrationAndCommit(t *testing.T) {
	t.Parallel()
	t.Run("told to stop", func(t *testing.T) {
		t.Parallel()
		b := newBundle(t, setup{Partitions: 1})
		gate, through := b.startGate(t)
		batch := orders("acme:edifact", 0, 250)
		gate.keep("/249")
		b.produce(t, batch...)
		f := b.launch(t, 0, through, "DEDUP_PROCESSOR_SESSIONS=1")
		gate.awaitKept(t)
		stopped := make(chan error, 1)
		go func() { stopped <- f.child.Stop(context.WithoutCancel(t.Context())) }()
		f.awaitLog(t, "stopping: the batch in hand is finished first")
		require.NotContains(t, gate.let(t), "DL002")
		require.NoError(t, <-stopped)
		require.Zero(t, f.child.ExitCode())
		b.checkStopped(t) // it is finished, not only harmless
		f = b.start(t, 0)
		b.produce(t, batch...)
		b.check(t)
		require.Equal(t, map[string]int{"NEW": 250, "SEEN": 750}, b.statuses(t))
		f.term(t)
		b.checkStopped(t)
	})
	t.Run("another takes a partition", func(t *testing.T) {
		t.Parallel()
		b := newBundle(t, setup{Partitions: 2})
		gate, through := b.startGate(t)
		f := b.start(t, 0, through, "DEDUP_PROCESSOR_SESSIONS=1")
		gate.keep("/249")
		batch := append(in(0, orders("t0:edifact", 0, 250)...), in(1, orders("t1:edifact", 0, 250)...)...)
		b.produce(t, batch...)
		gate.awaitKept(t)
		// The group gives one of the two to the other, which decides and commits its
		// records while the first still waits for the same.
		g := b.start(t, 1, "DEDUP_PROCESSOR_SESSIONS=1")
		g.awaitPartitions(t, 1)
		g.awaitMetric(t, "dedup_messages_total", nil, func(v float64) bool { return v >= 500 })
		gate.let(t)
		b.check(t)
		require.Equal(t, map[string]int{"NEW": 500, "SEEN": 500}, b.statuses(t))
		f.term(t)
		g.term(t)
		b.checkStopped(t)
	})
}

// consumes is the number of the one partition that a filter runs.
func (f *filter) consumes(t *testing.T) int32 {
	t.Helper()
	f.awaitPartitions(t, 1)
	_, body, err := f.get(t.Context(), "/readyz")
	require.NoError(t, err)
	var r struct{ Running []string }
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	if strings.HasSuffix(r.Running[0], "/1") {
		return 1
	}
	return 0
}

// messageOf is a message of an AS2 gateway: its Message-ID is the key.
func messageOf(id string, partition int32) message {
	m := keyed("acme:as2", id, []byte("contents of "+id))
	m.Partition = partition
	return m
}

// resentMeanwhile: the partner misses his receipt and sends his message again, by
// another partition and another filter, while the first is decided and not yet
// committed; and once more later. The second is a duplicate whose headers have what
// a receipt needs. Then the filter is killed before a first is published: its resend
// is one of a first that is still to come, and comes.
func resentMeanwhile(t *testing.T, k *stopper) {
	t.Helper()
	b := newBundle(t, setup{Partitions: 2, Kafka: k.addr()})
	f, g := b.start(t, 0, "DEDUP_PROCESSOR_SESSIONS=1"), b.start(t, 1, "DEDUP_PROCESSOR_SESSIONS=1")
	mine, theirs := f.consumes(t), g.consumes(t)
	s := k.stop(t, b, 0, beforeEnd)
	b.produce(t, messageOf("m1@partner", mine))
	s.await(t)
	b.produce(t, messageOf("m1@partner", theirs))
	g.awaitMetric(t, "dedup_messages_total", []string{`status="SEEN"`}, func(v float64) bool { return v == 1 })
	close(s.free)
	b.check(t)
	b.produce(t, messageOf("m1@partner", mine))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 1, "SEEN": 2}, b.statuses(t))
	for nth := 1; nth <= 2; nth++ {
		first, again := b.outputOf(t, 0).Record, b.outputOf(t, nth).Record
		require.Equal(t, header(first, "dedup-id"), header(again, "dedup-first-id"))
		require.Equal(t, header(first, "dedup-origin"), header(again, "dedup-first-origin"))
		require.Equal(t, header(first, "dedup-first-seen-at"), header(again, "dedup-first-seen-at"))
	}

	s = k.stop(t, b, 0, beforeProduce)
	b.produce(t, messageOf("m2@partner", mine))
	s.await(t)
	f.kill(t)
	close(s.free)
	b.produce(t, messageOf("m2@partner", theirs))
	f = b.start(t, 0, "DEDUP_PROCESSOR_SESSIONS=1")
	b.check(t)
	got := []string{b.outputOf(t, 3).Status(), b.outputOf(t, 4).Status()}
	slices.Sort(got)
	require.Equal(t, []string{"NEW", "SEEN"}, got)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}
