package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/integration/laws"
)

// places are offsets by raw partition.
type places map[laws.Place]int64

// rawRecord is what the judgement needs of a raw record.
type rawRecord struct {
	place laws.Place
	epoch int32
	id    string
	stamp time.Time
}

// tail follows raw and the outputs as a read_committed consumer sees them.
type tail struct {
	client *kgo.Client
	raw    map[string]bool

	mu      sync.Mutex
	sent    int                  // raw records
	done    map[laws.Place]int   // raw place -> committed outputs
	ends    map[laws.Place]int64 // raw partition -> behind the last raw record
	reached map[laws.Place]int64 // raw partition -> behind the last raw record with an output
	news    chan struct{}        // something came
	kept    []rawRecord          // all raw records, also those that are gone from raw by now
}

func newTail(s *stage) (*tail, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addrs()...), kgo.ConsumeTopics(append(append([]string{}, s.raw...), s.outputs...)...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(200*time.Millisecond), kgo.MetadataMaxAge(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("making a reader: %w", err)
	}
	t := &tail{
		client: c, raw: map[string]bool{}, done: map[laws.Place]int{}, ends: map[laws.Place]int64{},
		reached: map[laws.Place]int64{}, news: make(chan struct{}, 1),
	}
	for _, name := range s.raw {
		t.raw[name] = true
	}
	return t, nil
}

func (t *tail) run(ctx context.Context) error {
	for ctx.Err() == nil {
		fetches := t.client.PollFetches(ctx)
		if fetches.IsClientClosed() {
			return nil
		}
		t.take(fetches)
		select {
		case t.news <- struct{}{}:
		default:
		}
	}
	return nil
}

func (t *tail) take(fetches kgo.Fetches) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		p := laws.PlaceOf(r)
		if t.raw[r.Topic] {
			t.sent++
			t.kept = append(t.kept, rawRecord{p, r.LeaderEpoch, laws.Header(r, idHeader), r.Timestamp})
			t.ends[laws.Place{Topic: p.Topic, Partition: p.Partition}] = p.Offset + 1
			return
		}
		origin, err := laws.ParsePlace(laws.Header(r, "dedup-origin"))
		if err != nil {
			return // the judgement says so
		}
		t.done[origin]++
		at := laws.Place{Topic: origin.Topic, Partition: origin.Partition}
		t.reached[at] = max(t.reached[at], origin.Offset+1)
	})
}

// mark is where raw ends now, by partition.
func (t *tail) mark(s *stage) places {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := places{}
	for _, name := range s.raw {
		for p := range partitions {
			at := laws.Place{Topic: name, Partition: int32(p)}
			m[at] = t.ends[at]
		}
	}
	return m
}

// counts are the raw records, and those with an output.
func (t *tail) counts() (sent, done int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent, len(t.done)
}

// awaitPassed returns when in every raw partition a record behind the mark has an
// output.
func (t *tail) awaitPassed(ctx context.Context, mark places) error {
	for {
		behind := ""
		t.mu.Lock()
		for at, end := range mark {
			if t.reached[at] <= end {
				behind = fmt.Sprintf("%s/%d is at %d, wanted behind %d", at.Topic, at.Partition, t.reached[at], end)
			}
		}
		t.mu.Unlock()
		if behind == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), behind)
		case <-t.news:
		}
	}
}

// awaitPassedAll returns when the last record of every raw partition has an output.
func (t *tail) awaitPassedAll(ctx context.Context) error {
	for {
		behind := ""
		t.mu.Lock()
		for at, end := range t.ends {
			if t.reached[at] < end {
				behind = fmt.Sprintf("%s/%d is at %d of %d", at.Topic, at.Partition, t.reached[at], end)
			}
		}
		t.mu.Unlock()
		if behind == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), behind)
		case <-t.news:
		}
	}
}

// awaitAll returns when every raw record has an output.
func (t *tail) awaitAll(ctx context.Context) error {
	for {
		sent, done := t.counts()
		if done >= sent {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d raw records have no output", context.Cause(ctx), sent-done, sent)
		case <-t.news:
		}
	}
}
