package laws

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// askEvery is how often a condition is looked at.
const askEvery = 50 * time.Millisecond

// ReadCommitted reads the topics from start to end, as a read_committed consumer
// sees them, once no transaction is open on them. Positions are told by control
// records too: what lies at the end may be an aborted transaction, which yields
// no record.
func ReadCommitted(ctx context.Context, brokers []string, admin *kadm.Client, topics ...string) ([]*kgo.Record, error) {
	ends, err := Settled(ctx, admin, topics)
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

// Settled returns the topics' ends when no transaction is open on them: the last
// stable offsets are the ends. A commit's answer comes before its markers are
// written, and that of a killed process is aborted by its successor, or after the
// transaction timeout; until then its outputs could not be judged.
func Settled(ctx context.Context, admin *kadm.Client, topics []string) (kadm.ListedOffsets, error) {
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
