package integration

import (
	"context"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
)

// leave tells a filter that its next stop is for good.
func (b *bundle) leave(t *testing.T, f *filter) {
	t.Helper()
	b.command(t, nil, "run", "--leave", strconv.Itoa(f.child.PID()))
	f.awaitLog(t, "told to leave")
}

// instances are the static members of the group, with the number of partitions
// each has.
func (b *bundle) instances(t *testing.T) map[string]int {
	t.Helper()
	d, err := b.admin.DescribeGroups(t.Context(), b.group)
	require.NoError(t, err)
	require.NoError(t, d.Error())
	has := map[string]int{}
	for _, m := range d[b.group].Members {
		if m.InstanceID == nil {
			has["(no name)"]++
			continue
		}
		c, ok := m.Assigned.AsConsumer()
		require.True(t, ok)
		for _, topic := range c.Topics {
			has[*m.InstanceID] += len(topic.Partitions)
		}
	}
	return has
}

// TestRestartStays: a process that is stopped and started again has its slot and
// its partitions; the other sees no rebalance, and no member leaves meanwhile.
func TestRestartStays(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Topics: []string{"as2", "as4"}, Partitions: 4})
	f, g := b.start(t, 0, auto...), b.start(t, 1, auto...)
	f.awaitPartitions(t, 4)
	g.awaitPartitions(t, 4)
	l := b.startLoad(t, rng, "r", 8)
	l.passMore(t, 300)
	mine, other, undisturbed, members := f.awaitPlace(t, 4), g.awaitPlace(t, 4), g.rebalances(t), b.instances(t)
	f.term(t)
	stopped := time.Now()
	require.Equal(t, members, b.instances(t), "a stop that is half a restart leaves nothing")
	f = b.launch(t, 0, auto...)
	f.awaitPartitions(t, 4)
	t.Logf("%s after its stop the process has its partitions again", time.Since(stopped).Round(time.Millisecond))
	l.passMore(t, 300)
	require.Equal(t, mine, f.awaitPlace(t, 4))
	require.Equal(t, other, g.awaitPlace(t, 4))
	require.Equal(t, members, b.instances(t))
	require.InDelta(t, undisturbed, g.rebalances(t), 0, "rebalances that the other saw")
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}

// TestScaleInLeaves: told so beforehand, a stopped process leaves the group, and
// the other has its partitions although the session timeout is far away.
func TestScaleInLeaves(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Topics: []string{"as2", "as4"}, Partitions: 4})
	f, g := b.start(t, 0, auto...), b.start(t, 1, auto...)
	f.awaitPartitions(t, 4)
	g.awaitPartitions(t, 4)
	l := b.startLoad(t, rng, "i", 8)
	l.passMore(t, 300)
	b.leave(t, g)
	l.passMore(t, 300) // it works on until it is stopped
	g.awaitPartitions(t, 4)
	g.term(t)
	stopped := time.Now()
	f.awaitPartitions(t, 8)
	t.Logf("%s after the stop the other process has all partitions (session timeout 5 m)", time.Since(stopped).Round(time.Millisecond))
	require.Equal(t, map[string]int{b.group + "-0-0": 4, b.group + "-0-1": 4}, b.instances(t))
	require.Contains(t, g.text(t), "left the group")
	l.passMore(t, 300)
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestDynamicMembersLeave: without static membership each stop leaves.
func TestDynamicMembersLeave(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	dynamic := slices.Concat(auto, []string{"DEDUP_PROCESSOR_STATIC_MEMBERSHIP=false"})
	f, g := b.start(t, 0, dynamic...), b.start(t, 1, dynamic...)
	f.awaitPartitions(t, 2)
	l := b.startLoad(t, rng, "y", 8)
	l.passMore(t, 300)
	g.term(t)
	f.awaitPartitions(t, 4)
	l.passMore(t, 300)
	l.end(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestLeaveIsSentToFiltersOnly: the signal ends whoever does not expect it.
func TestLeaveIsSentToFiltersOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Unprepared: true})
	for pid, says := range map[string]string{
		"0": "write the process id", strconv.Itoa(syscall.Getpid()): "that process is", "999999999": "there is no such process",
	} {
		r := b.try(t, nil, "run", "--leave", pid)
		require.Equal(t, 1, r.code, r.stderr)
		require.Contains(t, r.stderr, "--leave "+pid)
		require.Contains(t, r.stderr, says)
	}
	require.Equal(t, 2, b.try(t, nil, "run", "--leave", "dedup").code)
}

// TestRollingRestart: three processes are restarted one after the other under
// load. What is measured is told, not judged; the laws are.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Topics: []string{"as2", "as4"}, Partitions: 6})
	var fs []*filter
	for i := range 3 {
		fs = append(fs, b.launch(t, i, auto...))
	}
	for _, f := range fs {
		f.awaitPartitions(t, 4)
	}
	m := b.measure(t)
	l := b.startLoad(t, rng, "o", 8)
	l.passMore(t, 500)
	began := time.Now()
	for i := range fs {
		at := fs[i].awaitPlace(t, 4)
		fs[i].term(t)
		fs[i] = b.launch(t, i, auto...)
		require.Equal(t, at, fs[i].awaitPlace(t, 4), "slot and partitions of process %d", i)
		l.passMore(t, 500)
	}
	ended := time.Now()
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	for at, longest := range m.pauses(t, b.books(), began, ended) {
		t.Logf("rolling restart: longest wait of a record of %s/%d: %s", at.Topic, at.Partition, longest.Round(time.Millisecond))
	}
	for _, f := range fs {
		f.term(t)
	}
	b.checkStopped(t)
}

// meter notes when each output was committed, as a reader sees it.
type meter struct {
	stop context.CancelFunc
	done chan struct{}
	seen map[place]time.Time // of the raw record
}

// measure reads the outputs beside the test from now on.
func (b *bundle) measure(t *testing.T) *meter {
	t.Helper()
	k := b.track(t)
	ctx, stop := context.WithCancel(t.Context())
	m := &meter{stop: stop, done: make(chan struct{}), seen: map[place]time.Time{}}
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			fetches := k.client.PollFetches(ctx)
			now := time.Now()
			for _, r := range fetches.Records() {
				if p, err := laws.ParsePlace(header(r, "dedup-origin")); err == nil {
					m.seen[p] = now
				}
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-m.done
	})
	return m
}

// pauses are, per raw partition, the longest that a record waited for its output,
// of those that waited between the two times.
func (m *meter) pauses(t *testing.T, books []sent, began, ended time.Time) map[place]time.Duration {
	t.Helper()
	m.stop()
	<-m.done
	longest := map[place]time.Duration{}
	for _, s := range books {
		seen := m.seen[s.Place]
		if seen.Before(began) || s.At.After(ended) {
			continue
		}
		at := place{Topic: s.Place.Topic, Partition: s.Place.Partition}
		longest[at] = max(longest[at], seen.Sub(s.At))
	}
	return longest
}
