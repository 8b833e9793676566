package tail

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
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

// follow shows what comes behind the spans.
func follow(ctx context.Context, o *Options, spans map[place]span, show func(Record) error) error {
	from := map[place]int64{}
	for p, s := range spans {
		from[p] = s.end
	}
	client, err := o.open(from)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil // told to stop
		}
		if err := fetches.Err(); err != nil {
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
