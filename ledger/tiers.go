package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Registrar is the tier that decides: PostgreSQL.
type Registrar interface {
	Register(ctx context.Context, chunk *Chunk) (*Answer, error)
}

// WitnessCounter keeps the number of witnesses where it outlives the process.
type WitnessCounter interface {
	CountWitnesses(ctx context.Context, witnesses []Witness) error
}

// Rememberer is the tier that remembers: Redis.
type Rememberer interface {
	// Remember tells of facts and returns what contradicts them. ErrOver says that
	// there was nothing left to tell.
	Remember(ctx context.Context, now Clock, facts []Fact) ([]Witness, error)
}

// The tiers, as labels of metrics.
const (
	TierHot  = "hot"
	TierCold = "cold"
)

const (
	defaultQueue   = 16
	witnessTimeout = 5 * time.Second
)

// TiersConfig is what a two-tier ledger is made of.
type TiersConfig struct {
	Cold      Registrar
	Hot       Rememberer     // nil: nothing is remembered
	Witnesses WitnessCounter // nil: witnesses are logged and counted in Stats only
	// Queue is how many batches may wait for Redis; 0 means 16. A batch above
	// it pushes out the oldest.
	Queue int
	Log   *slog.Logger // nil: nothing is logged
	// Observe is told of each call to a tier, from the goroutine that made it;
	// nil: nobody is.
	Observe func(tier string, took time.Duration, err error)
}

// TiersStats are counts since the start of the process.
type TiersStats struct {
	Remembered int64          // facts handed to Redis without an error
	Over       int64          // facts of calls whose windows had all ended before: nothing was sent
	Failed     int64          // facts of calls that ended with an error
	Dropped    int64          // facts pushed out of the queue, or left at the end
	Witnesses  map[Gate]int64 // by the gate of the row written now
}

// Tiers is the two-tier ledger: PostgreSQL decides, Redis remembers (ARCHITECTURE §2,
// law 4). Nothing that Redis says, or fails to say, reaches an Answer.
type Tiers struct {
	cfg  TiersConfig
	wake chan struct{} // holds one token while there may be work
	done chan struct{} // closed when the worker has ended
	stop context.CancelFunc

	mu     sync.Mutex
	queue  []remembered // oldest first, at most cfg.Queue
	closed bool
	stats  TiersStats
}

type remembered struct {
	now   Clock
	facts []Fact
}

// NewTiers starts the worker that tells Redis. Close ends it.
func NewTiers(cfg TiersConfig) *Tiers {
	if cfg.Queue <= 0 {
		cfg.Queue = defaultQueue
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string, time.Duration, error) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	t := &Tiers{cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}), stop: stop}
	t.stats.Witnesses = map[Gate]int64{}
	go t.work(ctx)
	return t
}

// Register asks PostgreSQL, and it alone.
func (t *Tiers) Register(ctx context.Context, chunk *Chunk) (*Answer, error) {
	start := time.Now()
	answer, err := t.cfg.Cold.Register(ctx, chunk)
	t.cfg.Observe(TierCold, time.Since(start), err)
	return answer, err
}

// Confirm hands the facts of a committed batch to the worker and returns at
// once, whatever state Redis is in. The caller leaves facts alone afterwards.
// When the queue is full the oldest batch is dropped: the newest facts are the
// likeliest to be asked for, and a missing fact costs a look at PostgreSQL.
func (t *Tiers) Confirm(facts []Fact, now Clock) {
	if t.cfg.Hot == nil || len(facts) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		t.stats.Dropped += int64(len(facts))
		return
	}
	if len(t.queue) == t.cfg.Queue {
		t.stats.Dropped += int64(len(t.queue[0].facts))
		t.queue = append(t.queue[:0], t.queue[1:]...)
	}
	t.queue = append(t.queue, remembered{now: now, facts: facts})
	t.signal()
}

// Stats is a copy of the counts.
func (t *Tiers) Stats() TiersStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Witnesses = maps.Clone(t.stats.Witnesses)
	return s
}

// Close waits until the queue is empty, at most until ctx ends; then the call in
// hand is cancelled and what is left is dropped. Dropping loses no verdict.
func (t *Tiers) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.signal()
	t.mu.Unlock()
	defer t.stop()
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
	}
	t.stop()
	<-t.done
	if left := t.dropRest(); left > 0 {
		return fmt.Errorf("drain the facts for Redis: %d left: %w", left, context.Cause(ctx))
	}
	return nil
}

// signal is called with the mutex held; the channel's one place makes it never
// block, and a token that is already there says the same.
func (t *Tiers) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *Tiers) work(ctx context.Context) {
	defer close(t.done)
	for ctx.Err() == nil {
		batch, ok, closed := t.next()
		if ok {
			t.remember(ctx, batch)
			continue
		}
		if closed {
			return
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
		}
	}
}

func (t *Tiers) next() (batch remembered, ok, closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return remembered{}, false, t.closed
	}
	batch = t.queue[0]
	rest := copy(t.queue, t.queue[1:])
	t.queue[rest] = remembered{} // or its facts live until the slot is used again
	t.queue = t.queue[:rest]
	return batch, true, t.closed
}

func (t *Tiers) dropRest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left int64
	for _, b := range t.queue {
		left += int64(len(b.facts))
	}
	t.queue = nil
	t.stats.Dropped += left
	return left
}

// remember makes one call. An error is counted and observed, not logged: the hot
// tier logs when it goes and when it is back, and a batch is no event.
func (t *Tiers) remember(ctx context.Context, b remembered) {
	start := time.Now()
	witnesses, err := t.cfg.Hot.Remember(ctx, b.now, b.facts)
	over := errors.Is(err, ErrOver)
	if !over {
		t.cfg.Observe(TierHot, time.Since(start), err)
	}

	t.mu.Lock()
	switch n := int64(len(b.facts)); {
	case over:
		t.stats.Over += n
	case err == nil:
		t.stats.Remembered += n
	default:
		t.stats.Failed += n
	}
	for i := range witnesses {
		t.stats.Witnesses[witnesses[i].Fact.Origin.Gate]++
	}
	t.mu.Unlock()
	t.report(ctx, witnesses)
}

// report tells of witnesses by number and place, never by key: a key is the
// partner's data.
func (t *Tiers) report(ctx context.Context, witnesses []Witness) {
	if len(witnesses) == 0 {
		return
	}
	last := witnesses[len(witnesses)-1]
	t.cfg.Log.WarnContext(ctx, "Redis held live facts of messages PostgreSQL had no row for; verdicts are PostgreSQL's",
		"count", len(witnesses),
		"topic_id", last.Fact.Origin.Topic.String(),
		"partition", last.Fact.Origin.Partition,
		"offset", last.Fact.Origin.Offset,
		"remembered_topic_id", last.Was.Topic.String(),
		"remembered_partition", last.Was.Partition,
		"remembered_offset", last.Was.Offset,
		"remembered_first_seen", last.WasSeen)
	if t.cfg.Witnesses == nil {
		return
	}
	// The count outlives a stop: a shutdown in this moment would lose the only
	// sign that PostgreSQL forgot.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), witnessTimeout,
		errors.New("counting witnesses took longer than "+witnessTimeout.String()))
	defer cancel()
	if err := t.cfg.Witnesses.CountWitnesses(ctx, witnesses); err != nil {
		t.cfg.Log.WarnContext(ctx, "witnesses were not counted in PostgreSQL", "count", len(witnesses), "error", err)
	}
}
