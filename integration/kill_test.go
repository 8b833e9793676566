package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// load produces traffic beside the test, never far ahead of what the test has
// seen committed: a filter that is kept down is not to find an hour's work.
type load struct {
	b       *bundle
	k       *tracker
	client  *kgo.Client
	stop    context.CancelFunc
	done    chan error
	allowed atomic.Int64 // messages that may be sent by now
}

// loadAhead is how many messages the load may be ahead of the outputs.
const loadAhead = 1500

// startLoad sends so many messages of traffic every 20 ms. Its batches are small,
// as those of a quiet hub are, and not compressed: under the race detector each
// compressed batch costs its reader a new 4 MiB buffer.
func (b *bundle) startLoad(t *testing.T, rng *rand.Rand, name string, each int) *load {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{b: b, k: b.track(t), client: client, stop: cancel, done: make(chan error, 1)}
	l.allowed.Store(loadAhead)
	own := rand.New(rand.NewPCG(rng.Uint64(), 0))
	go func() { l.done <- l.run(ctx, own, name, each) }()
	t.Cleanup(func() {
		cancel()
		client.Close()
	})
	return l
}

func (l *load) run(ctx context.Context, rng *rand.Rand, name string, each int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	sent := int64(0)
	for round := 0; ; round++ {
		if sent < l.allowed.Load() {
			// What was begun is finished and booked.
			if err := l.send(context.WithoutCancel(ctx), traffic(rng, fmt.Sprintf("%s%d.", name, round/10), each)); err != nil {
				return err
			}
			sent += int64(each)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// passMore returns when so many more outputs are committed than were seen.
func (l *load) passMore(t *testing.T, n int) {
	t.Helper()
	l.allowed.Store(int64(len(l.k.seen) + n + loadAhead))
	l.k.awaitCount(t, len(l.k.seen)+n)
}

// send is produce for goroutines that are not the test's own.
func (l *load) send(ctx context.Context, messages []message) error {
	at := time.Now()
	records := l.b.records(messages)
	if err := l.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("producing traffic: %w", err)
	}
	l.b.book(at, messages, records)
	return nil
}

// end stops the load and waits for its last batch.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	require.NoError(t, <-l.done)
}

// follow reads outputs for a while, or until the process ends.
func (k *tracker) follow(t *testing.T, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for ctx.Err() == nil {
		k.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if p, err := laws.ParsePlace(header(r, "dedup-origin")); err == nil {
				k.seen[p]++
			}
		})
	}
}

// TestKilledTenTimes: kill -9 at random moments: while it starts, joins, learns,
// registers or commits.
// Fault card: F16.
func TestKilledTenTimes(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Partitions: 4})
	l := b.startLoad(t, rng, "k", 8)
	for i := range 10 {
		f := b.launch(t, 0, "DEDUP_PROCESSOR_BATCH_RECORDS="+fmt.Sprint(20+rng.IntN(200)), "DEDUP_PROCESSOR_CHUNK_RECORDS="+fmt.Sprint(10+rng.IntN(100)))
		if i%3 == 2 {
			moment := time.Duration(rng.IntN(4000)) * time.Millisecond
			t.Logf("kill %d: %s after its start", i, moment)
			l.k.follow(t, moment)
		} else {
			n := 1 + rng.IntN(400)
			t.Logf("kill %d: %d outputs later", i, n)
			l.passMore(t, n)
		}
		f.kill(t)
	}
	l.end(t)
	f := b.start(t, 0)
	b.awaitOutputs(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestStoppedUnderLoad: SIGTERM finishes the batch in hand, exits with 0 and
// leaves nothing decided but uncommitted.
// Fault card: F04.
func TestStoppedUnderLoad(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Partitions: 4})
	l := b.startLoad(t, rng, "s", 8)
	for range 4 {
		// One session: while a second one joins, the first throws a decided batch
		// back, and a stop before it came again rightly leaves D ahead of W.
		f := b.start(t, 0, "DEDUP_PROCESSOR_SESSIONS=1", "DEDUP_PROCESSOR_BATCH_RECORDS="+fmt.Sprint(20+rng.IntN(500)))
		l.passMore(t, 1+rng.IntN(600))
		f.term(t)
		require.Zero(t, ask[int](t, b, `select count(*) from dedup_position where (d_epoch, d_offset) <> (w_epoch, w_offset)`))
	}
	// And while it starts.
	for range 3 {
		f := b.launch(t, 0)
		f.await(t, readyWithin, func() string { return "no answer to /healthz" }, func() bool {
			code, _, err := f.get(t.Context(), "/healthz")
			return err == nil && code == http.StatusOK
		})
		l.k.follow(t, time.Duration(rng.IntN(1500))*time.Millisecond)
		f.term(t)
	}
	l.end(t)
	f := b.start(t, 0)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestProcessesComeAndGo: 2, 3, 1. Members are static: the partitions of one
// that left go over when its session times out.
// Fault card: F04.
func TestProcessesComeAndGo(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Topics: []string{"as2", "as4"}, Partitions: 3})
	l := b.startLoad(t, rng, "p", 6)
	var fs []*filter
	for slot := range 3 {
		fs = append(fs, b.start(t, slot))
		l.passMore(t, 500)
	}
	l.passMore(t, 1000)
	fs[2].term(t)
	l.passMore(t, 1000)
	fs[0].term(t)
	l.passMore(t, 500)
	fs[1].awaitPartitions(t, 6)
	l.end(t)
	b.check(t)
	// One that comes back takes its place again.
	again := b.start(t, 2)
	b.produce(t, traffic(rng, "again", 500)...)
	b.check(t)
	again.term(t)
	fs[1].term(t)
	b.checkStopped(t)
}

// TestSameSlotTwice: the second process with a slot takes over, the first ends
// with a sentence; no message is lost or doubled.
func TestSameSlotTwice(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	l := b.startLoad(t, rng, "d", 8)
	first := b.start(t, 0)
	l.passMore(t, 300)
	second := b.launch(t, 0)
	code, log := first.ends(t)
	require.Equal(t, 1, code)
	require.Contains(t, log, "slot")
	second.awaitReady(t)
	l.passMore(t, 300)
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	second.term(t)
	b.checkStopped(t)
}
