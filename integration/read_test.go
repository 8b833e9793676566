package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// outputsWithin is how long the outputs of everything sent may take: it covers
// a killed process's session timeout and a rebalance.
const outputsWithin = 120 * time.Second

// tracker follows the outputs as they are committed.
type tracker struct {
	client *kgo.Client
	seen   map[place]int // raw place -> outputs
}

// track starts reading the outputs from their starts.
func (b *bundle) track(t *testing.T) *tracker {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(b.outputs()...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &tracker{client: c, seen: map[place]int{}}
}

// awaitCount returns when at least n raw records have a committed output.
func (k *tracker) awaitCount(t *testing.T, n int) {
	t.Helper()
	k.await(t, func() (int, bool) { return n - len(k.seen), len(k.seen) >= n })
}

// await reads on until it is enough; missing is for the message.
func (k *tracker) await(t *testing.T, enough func() (missing int, ok bool)) {
	t.Helper()
	require.NoError(t, k.readUntil(t.Context(), outputsWithin, enough))
}

// readUntil is await with an error.
func (k *tracker) readUntil(ctx context.Context, within time.Duration, enough func() (missing int, ok bool)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		missing, ok := enough()
		if ok {
			return nil
		}
		fetches := k.client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d outputs still missing after %s: %w", missing, within, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if p, err := laws.ParsePlace(header(r, "dedup-origin")); err == nil {
				k.seen[p]++
			}
		})
	}
}

// all is enough when everything in the books has a committed output.
func (k *tracker) all(books []sent) func() (missing int, ok bool) {
	return func() (int, bool) {
		missing := 0
		for i := range books {
			if k.seen[books[i].Place] == 0 {
				missing++
			}
		}
		return missing, missing == 0
	}
}

// awaitOutputs returns when everything sent so far has a committed output.
func (b *bundle) awaitOutputs(t *testing.T) {
	t.Helper()
	k := b.track(t)
	defer k.client.Close()
	k.await(t, k.all(b.books()))
}
