package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// outputsWithin is how long the outputs of everything sent may take: it covers
// a killed process's session timeout and a rebalance.
const outputsWithin = 120 * time.Second

// readCommitted reads the topics from start to end, as a read_committed consumer
// sees them, once no transaction is open on them. Positions are told by control
// records too: what lies at the end may be an aborted transaction, which yields
// no record.
func readCommitted(ctx context.Context, brokers []string, admin *kadm.Client, topics ...string) ([]*kgo.Record, error) {
	ends, err := settled(ctx, admin, topics)
	if err != nil {
		return nil, err
	}
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("asking for the starts of the outputs: %w", err)
	}
	left := map[string]map[int32]int64{}
	from := map[string]map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, ok := starts.Lookup(end.Topic, end.Partition); !ok || start.Offset >= end.Offset {
			return
		}
		if left[end.Topic] == nil {
			left[end.Topic], from[end.Topic] = map[int32]int64{}, map[int32]kgo.Offset{}
		}
		left[end.Topic][end.Partition] = end.Offset
		from[end.Topic][end.Partition] = kgo.NewOffset().AtStart()
	})
	return readUntil(ctx, brokers, from, left)
}

// settled returns the topics' ends when no transaction is open on them: the last
// stable offsets are the ends. A commit's answer comes before its markers are
// written, and that of a killed process is aborted by its successor, or after the
// transaction timeout; until then its outputs could not be judged.
func settled(ctx context.Context, admin *kadm.Client, topics []string) (kadm.ListedOffsets, error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		ends, err1 := admin.ListEndOffsets(ctx, topics...)
		stable, err2 := admin.ListCommittedOffsets(ctx, topics...)
		if err := errors.Join(err1, err2, ends.Error(), stable.Error()); err != nil {
			return nil, fmt.Errorf("asking for the ends of topics: %w", err)
		}
		open := 0
		ends.Each(func(end kadm.ListedOffset) {
			if at, ok := stable.Lookup(end.Topic, end.Partition); !ok || at.Offset < end.Offset {
				open++
			}
		})
		if open == 0 {
			return stable, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for open transactions on %d partitions: %w", open, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func readUntil(ctx context.Context, brokers []string, from map[string]map[int32]kgo.Offset, left map[string]map[int32]int64) ([]*kgo.Record, error) {
	if len(left) == 0 {
		return nil, nil
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(from),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, fmt.Errorf("making a reader: %w", err)
	}
	defer c.Close()
	var records []*kgo.Record
	for len(left) > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("reading outputs: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, ok := left[r.Topic][r.Partition]; ok && r.Offset+1 >= end {
				delete(left[r.Topic], r.Partition)
				if len(left[r.Topic]) == 0 {
					delete(left, r.Topic)
				}
			}
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records, nil
}

// parsePlace reads topic/partition/offset.
func parsePlace(s string) (place, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return place{}, fmt.Errorf("%q is no place", s)
	}
	partition, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return place{}, fmt.Errorf("%q is no place: %w", s, err)
	}
	offset, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return place{}, fmt.Errorf("%q is no place: %w", s, err)
	}
	return place{parts[0], int32(partition), offset}, nil
}

func (p place) String() string { return fmt.Sprintf("%s/%d/%d", p.topic, p.partition, p.offset) }

// header is the value of the last header of a name.
func header(r *kgo.Record, name string) string {
	for _, h := range slices.Backward(r.Headers) {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

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
			if p, err := parsePlace(header(r, "dedup-origin")); err == nil {
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
			if k.seen[books[i].place] == 0 {
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
