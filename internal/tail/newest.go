package tail

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics/acl"
)

// newest reads each partition's last records and keeps the newest of all. One
// partition after the other: what is kept is twice what is shown, however many
// there are.
func newest(ctx context.Context, o *Options, spans map[place]span) ([]Record, error) {
	var kept recent
	for p, s := range spans {
		found, err := o.last(ctx, p, s)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			kept.add(r, o.Last)
		}
	}
	slices.SortFunc(kept, compare)
	return kept, nil
}

// last reads a partition's last records. Of the offsets at its end some are
// transaction markers or aborted records, so where too few came it is read again
// from further back.
func (o *Options) last(ctx context.Context, p place, s span) (found []Record, err error) {
	for back := int64(2*o.Last + 16); o.Last > 0 && s.start < s.end; back *= 8 {
		from := max(s.start, s.end-back)
		if found, err = o.read(ctx, p, from, s.end); err != nil {
			return nil, err
		}
		if len(found) >= o.Last || from == s.start {
			break
		}
	}
	return found, nil
}

// read keeps the last records of a partition between two offsets.
func (o *Options) read(ctx context.Context, p place, from, end int64) (found []Record, err error) {
	client, err := o.open(map[place]int64{p: from})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for next := from; next < end; {
		fetches := client.PollFetches(ctx)
		if err := o.denied(fetches); err != nil {
			return nil, err
		}
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("reading %s/%d: %w", p.topic, p.partition, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if r.Attrs.IsControl() || r.Offset >= end {
				return
			}
			if found = append(found, o.cut(r)); len(found) > o.Last {
				found = slices.Delete(found, 0, 1)
			}
		})
	}
	return found, nil
}

// follow shows what comes behind the spans, and all of partitions that are added
// meanwhile.
func follow(ctx context.Context, o *Options, adm *kadm.Client, spans map[place]span, show func(Record) error) error {
	from := map[place]int64{}
	for p, s := range spans {
		from[p] = s.end
	}
	client, err := o.open(from)
	if err != nil {
		return err
	}
	defer client.Close()
	for looked := time.Now(); ; {
		if time.Since(looked) >= lookEvery {
			if err := o.addNew(ctx, adm, client, from); err != nil && ctx.Err() == nil {
				return err
			}
			looked = time.Now()
		}
		fetches := pollFor(ctx, client, lookEvery)
		if ctx.Err() != nil {
			return nil // told to stop
		}
		if err := o.denied(fetches); err != nil {
			return err
		}
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("following: %w", err)
		}
		for _, r := range fetches.Records() {
			if r.Attrs.IsControl() {
				continue
			}
			if err := show(o.cut(r)); err != nil {
				return err
			}
		}
	}
}

// denied are the topics that a fetch was refused of: the right may go between two
// looks.
func (o *Options) denied(fetches kgo.Fetches) error {
	var rights acl.Rights
	fetches.EachError(func(topic string, _ int32, err error) {
		if r := read(topic); errors.Is(err, kerr.TopicAuthorizationFailed) && !slices.Contains(rights, r) {
			rights = append(rights, r)
		}
	})
	if len(rights) == 0 {
		return nil
	}
	return &acl.MissingError{Principal: o.Who, Rights: rights}
}

func pollFor(ctx context.Context, client *kgo.Client, wait time.Duration) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return client.PollFetches(ctx)
}

// addNew follows partitions that were not there before, from their start: what
// they hold came since.
func (o *Options) addNew(ctx context.Context, adm *kadm.Client, client *kgo.Client, known map[place]int64) error {
	all, err := o.partitions(ctx, adm)
	if err != nil {
		return err
	}
	added := map[string]map[int32]kgo.Offset{}
	for _, p := range all {
		if _, ok := known[p]; ok {
			continue
		}
		known[p] = 0
		if added[p.topic] == nil {
			added[p.topic] = map[int32]kgo.Offset{}
		}
		added[p.topic][p.partition] = kgo.NewOffset().AtStart()
	}
	if len(added) > 0 {
		client.AddConsumePartitions(added)
	}
	return nil
}

// compare is the order of time; of one time, that of places.
func compare(a, b Record) int {
	return cmp.Or(a.Timestamp.Compare(b.Timestamp), strings.Compare(a.Topic, b.Topic),
		cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
}

// recent is a heap with the oldest record on top.
type recent []Record

func (h recent) Len() int           { return len(h) }
func (h recent) Less(i, j int) bool { return compare(h[i], h[j]) < 0 }
func (h recent) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are for container/heap.
func (h *recent) Push(x any) { *h = append(*h, x.(Record)) } //nolint:forcetypeassert // ours alone

// Pop takes the last.
func (h *recent) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// add keeps the newest n.
func (h *recent) add(r Record, n int) {
	heap.Push(h, r)
	if h.Len() > n {
		heap.Pop(h)
	}
}
