package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// tail follows raw and the outputs as a read_committed consumer sees them. Raw
// partitions go by the names of their generations.
type tail struct {
	client *kgo.Client
	s      *stage
	gens   *generations

	mu      sync.Mutex
	read    map[laws.Place]int64       // partition of any topic -> behind the last record, markers too
	done    map[laws.Place]int         // raw place -> committed outputs
	open    map[laws.Place]int32       // raw places without an output -> leader epoch
	ends    places                     // behind the last raw record
	reached places                     // behind the last raw record with an output
	kept    []rawRecord                // all raw records, also those that are gone from raw by now
	waiting map[chan struct{}]struct{} // are told that something came

	last  time.Time // an output came
	pause time.Duration
}

func newTail(s *stage) (*tail, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addrs()...), kgo.ConsumeTopics(append(append([]string{}, s.raw...), s.outputs...)...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(200*time.Millisecond), kgo.MetadataMaxAge(2*time.Second))
	if err != nil {
		return nil, fmt.Errorf("making a reader: %w", err)
	}
	return &tail{
		client: c, s: s, gens: &generations{}, read: map[laws.Place]int64{}, done: map[laws.Place]int{}, open: map[laws.Place]int32{},
		ends: places{}, reached: places{}, waiting: map[chan struct{}]struct{}{},
	}, nil
}

func (t *tail) run(ctx context.Context) error {
	for ctx.Err() == nil {
		fetches := t.client.PollFetches(ctx)
		if fetches.IsClientClosed() {
			return nil
		}
		t.take(fetches)
	}
	return nil
}

func (t *tail) take(fetches kgo.Fetches) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		p := laws.PlaceOf(r)
		t.read[partitionOf(p.Topic, p.Partition)] = p.Offset + 1
		switch {
		case r.Attrs.IsControl():
		case slices.Contains(t.s.raw, r.Topic):
			t.takeRaw(r)
		default:
			t.takeOutput(r, p)
		}
	})
	for c := range t.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (t *tail) takeRaw(r *kgo.Record) {
	p := t.gens.raw(r)
	t.kept = append(t.kept, rawRecord{p, r.LeaderEpoch, laws.Header(r, idHeader), r.Timestamp})
	t.ends[partitionOf(p.Topic, p.Partition)] = p.Offset + 1
	if t.done[p] == 0 {
		t.open[p] = r.LeaderEpoch
	}
}

func (t *tail) takeOutput(r *kgo.Record, p laws.Place) {
	origin, err := laws.ParsePlace(laws.Header(r, "dedup-origin"))
	if err != nil {
		return // the judgement says so
	}
	origin = t.gens.origin(origin, p)
	t.done[origin]++
	delete(t.open, origin)
	at := partitionOf(origin.Topic, origin.Partition)
	t.reached[at] = max(t.reached[at], origin.Offset+1)
	now := time.Now()
	if !t.last.IsZero() {
		t.pause = max(t.pause, now.Sub(t.last))
	}
	t.last = now
}

// silence is the longest time without any output since it was asked last.
func (t *tail) silence() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	longest := t.pause
	if !t.last.IsZero() {
		longest = max(longest, time.Since(t.last))
	}
	t.pause = 0
	return longest
}

// mark is where raw ends now, by partition.
func (t *tail) mark() places {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := places{}
	for _, name := range t.s.raw {
		for p := range t.s.width(name) {
			at := partitionOf(t.gens.now(name, int32(p)), int32(p))
			m[at] = t.ends[at]
		}
	}
	return m
}

// end of a raw partition: behind its last record.
func (t *tail) end(topic string, partition int32) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends[partitionOf(t.gens.now(topic, partition), partition)]
}

// counts are the raw records, and those with an output.
func (t *tail) counts() (sent, done int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.kept), len(t.done)
}

// without are the raw records that have no output, by their leader epochs.
func (t *tail) without() map[laws.Place]int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.open)
}

// await returns when is is true; it is asked, under the lock, whenever something
// came, and says what it waits for.
func (t *tail) await(ctx context.Context, is func() (waitsFor string)) error {
	news := make(chan struct{}, 1)
	t.mu.Lock()
	t.waiting[news] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.waiting, news)
		t.mu.Unlock()
	}()
	for {
		t.mu.Lock()
		behind := is()
		t.mu.Unlock()
		if behind == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), behind)
		case <-news:
		}
	}
}

// awaitPassed returns when in every raw partition a record behind the mark has an
// output.
func (t *tail) awaitPassed(ctx context.Context, mark places) error {
	return t.awaitBehind(ctx, mark, t.reached)
}

// awaitSent returns when in every raw partition a record behind the mark could be
// read: a leader has it, and no open transaction hides it.
func (t *tail) awaitSent(ctx context.Context, mark places) error {
	return t.awaitBehind(ctx, mark, t.ends)
}

func (t *tail) awaitBehind(ctx context.Context, mark, is places) error {
	return t.await(ctx, func() (behind string) {
		for at, end := range mark {
			if is[at] <= end {
				behind = fmt.Sprintf("%s/%d is at %d, wanted behind %d", at.Topic, at.Partition, is[at], end)
			}
		}
		return behind
	})
}

// awaitRead returns when the partitions were read up to there.
func (t *tail) awaitRead(ctx context.Context, to map[laws.Place]int64) error {
	return t.await(ctx, func() (behind string) {
		for at, end := range to {
			if t.read[at] < end {
				behind = fmt.Sprintf("%s/%d is read to %d of %d", at.Topic, at.Partition, t.read[at], end)
			}
		}
		return behind
	})
}

// forget a topic that was deleted, and follow the one that has its name now.
func (t *tail) forget(topic string) {
	t.client.PurgeTopicsFromClient(topic)
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := range t.read {
		if at.Topic == topic {
			delete(t.read, at)
		}
	}
}

func (t *tail) follow(topic string) { t.client.AddConsumeTopics(topic) }
