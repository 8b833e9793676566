package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// More rebuilds than this in this time and the process ends: what no rebuild
// mends, a person should see.
const (
	maxRebuilds   = 10
	rebuildWindow = 5 * time.Minute
	watchEvery    = time.Second
)

// ErrStalled says that a session did not move although the ledger answers.
var ErrStalled = errors.New("processor: no progress although the ledger answers")

// Processor runs the sessions of one process.
type Processor struct {
	cfg     Config
	m       *metrics
	slot    atomic.Int64 // changes between the lives of all sessions only
	counted atomic.Bool  // the group's sessions, once
	states  []*sessionState
	names   *names

	learners chan struct{} // a place per learner that reads
	bell     bell          // rings when the ledger answers again

	mu     sync.Mutex
	warned map[string]bool // by raw topic and its counts: as many as operators make
}

// New makes a processor; nothing is connected yet.
func New(cfg Config) *Processor {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Processor{cfg: cfg, names: newNames(), warned: map[string]bool{}, learners: make(chan struct{}, maxLearners)}
	p.slot.Store(int64(cfg.Slot))
	for range cfg.Sessions {
		p.states = append(p.states, &sessionState{})
	}
	p.m = newMetrics(p)
	return p
}

// Run filters until ctx ends, then finishes the batch in hand within the
// shutdown grace. It returns an error that no retry mends, or ErrStalled.
func (p *Processor) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopGrace := context.AfterFunc(ctx, func() {
		time.AfterFunc(p.cfg.ShutdownGrace, cancel)
	})
	defer stopGrace()
	for {
		if err := p.underSlot(ctx, work); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// runSessions runs the sessions under the present slot.
func (p *Processor) runSessions(ctx, work context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	for i := range p.cfg.Sessions {
		g.Go(func() error { return p.supervise(ctx, work, i) })
	}
	watch := make(chan error, 1)
	go func() { watch <- p.watch(ctx) }()
	err := p.waitAll(g, watch, done)
	done()
	return err
}

// waitAll waits for the sessions, or for the watchdog: a stalled session does
// not end by itself, so the process ends around it.
func (p *Processor) waitAll(g *errgroup.Group, watch <-chan error, done func()) error {
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	for {
		select {
		case err := <-ended:
			done()
			return err
		case err := <-watch:
			if err != nil {
				return err
			}
			watch = nil
		}
	}
}

// watch ends with ErrStalled when a session stands still.
func (p *Processor) watch(ctx context.Context) error {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			for i, st := range p.states {
				if d := st.stalled(now); d > p.cfg.StallExit {
					return fmt.Errorf("session %d for %s: %w", i, d.Round(time.Second), ErrStalled)
				}
			}
		}
	}
}

// supervise keeps one session alive: an error rebuilds it under the same
// identity, which fences what is left of its predecessor.
func (p *Processor) supervise(stop, work context.Context, i int) error {
	var rebuilds []time.Time
	for wait := retryMin; stop.Err() == nil; {
		began := time.Now()
		opened, err := p.life(stop, work, i)
		if err == nil {
			return nil
		}
		if isFatal(err) || errors.Is(err, ErrReplaced) || errors.Is(err, ledger.ErrSchema) {
			return fmt.Errorf("session %d: %w", i, err)
		}
		if opened {
			p.m.rebuilt("end")
		}
		if opened && !isDenied(err) { // a right that is missing is waited for, however long
			rebuilds = append(within(rebuilds, time.Now().Add(-rebuildWindow)), time.Now())
			if len(rebuilds) > maxRebuilds {
				return fmt.Errorf("session %d was rebuilt %d times in %s: %w", i, maxRebuilds, rebuildWindow, err)
			}
		}
		p.states[i].notCommitting(err.Error())
		p.cfg.Log.Log(stop, p.states[i].levelOf(err), "a session is rebuilt", "session", i, "error", err)
		if wait = min(2*wait, retryMax); time.Since(began) > time.Minute {
			wait = 2 * retryMin
		}
		select {
		case <-stop.Done():
		case <-time.After(wait/2 + rand.N(wait/2)): //nolint:gosec // jitter
		}
		if err := p.confirmSlot(stop); err != nil {
			return fmt.Errorf("session %d: %w", i, err)
		}
	}
	return nil
}

// warnOnce keeps the sessions of a process from saying the same in turn.
func (p *Processor) warnOnce(what string, say func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.warned[what] {
		p.warned[what] = true
		say()
	}
}

func within(ts []time.Time, since time.Time) []time.Time {
	for len(ts) > 0 && ts[0].Before(since) {
		ts = ts[1:]
	}
	return ts
}

// life is one session from its client's opening to its closing. opened tells a
// session that failed from a broker that cannot be reached.
func (p *Processor) life(stop, work context.Context, i int) (opened bool, err error) {
	p.at("session begins")
	limit, err := p.outputLimit(stop)
	if err != nil {
		return false, err
	}
	c, err := p.openClient(stop, i, limit)
	if err != nil {
		return false, err
	}
	defer c.close()
	st := p.states[i]
	st.alive(true)
	p.m.sessions.Inc()
	defer p.m.sessions.Dec()
	defer st.alive(false)
	s := &session{
		proc: p, cfg: &p.cfg, m: p.m, state: st, index: i,
		log:   p.cfg.Log.With("component", "filter", "session", i),
		kafka: c, routes: map[string]*topics.Route{}, build: map[string]*topics.Builder{}, ids: map[string]ledger.TopicID{},
		parts: map[place]*part{}, learned: make(chan lessonEnd),
		rejected: map[ledger.Origin]rejection{},
	}
	p.cfg.Log.Info("session open", "session", i, "transactional_id", p.transactionalID(i), "max_batch_bytes", limit)
	err = s.run(stop, work)
	s.leave()
	if err == nil && p.leaves(stop) {
		p.leaveGroup(work, c, i)
	}
	return true, c.orReplaced(stop, p.cfg.Group, p.transactionalID(i), p.cfg.Static, err)
}
