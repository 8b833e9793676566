package cold

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"dedupledger/ledger"
)

const (
	maxSlot       = 9999 // the highest that processor.slot may be, too
	noSlot        = -1
	slotCheck     = time.Second     // how often a held slot is looked after
	slotAnswer    = 5 * time.Second // within which the look is answered, or the slot is lost
	zombieTimeout = 5 * time.Second // for the end of a connection we have given up
)

// ErrPooled says that the connection that is to hold a slot is not one to a
// server process of its own: a lock of the session would be nobody's.
var ErrPooled = errors.New(`processor.slot "auto" holds a lock on a connection of its own, and a pooler in transaction mode (PgBouncer's pool_mode) gives none: ` +
	"give each process a number instead (processor.slot: 0, 1, ... or $ordinal) with postgres.statement_cache: false, or let postgres.url lead to PostgreSQL itself or to a pooler in session mode")

// Slots gives the processes of a consumer group a number each: the lowest whose
// advisory lock is free. The lock belongs to a connection, so it is free again
// when the process ends, however it ends, and within the keepalives (tenure.go)
// when its machine does. A slot that was lost is taken again before any other:
// after a restart of PostgreSQL each process has its own.
//
// A lock that is held says nothing of the moment after. Two processes can both
// take a slot for theirs, for as long as one has not noticed the end of its
// connection; what keeps the laws then is told in processor/slot.go.
type Slots struct {
	config Config
	log    *slog.Logger
	class  int32

	mu    sync.Mutex // of what follows, and of the connection
	held  *tenure    // nil: none yet
	final error      // what no waiting mends
}

// Slots numbers the processes of a group. Nothing is connected yet.
func (l *Ledger) Slots(group string) *Slots {
	return &Slots{config: l.config, log: l.log, class: slotClass(l.id, group)}
}

// slotClass is the first of the two keys of an advisory lock; the second is the
// slot. The keys of two integers are a space of their own, apart from those of
// one bigint (PostgreSQL, "Advisory Locks"). Were two groups to meet in one
// class, they would share their numbers, and no harm done.
func slotClass(id uuid.UUID, group string) int32 {
	h := sha256.New()
	h.Write([]byte("dedup slot\x00"))
	h.Write(id[:])
	h.Write([]byte(group))
	return int32(binary.BigEndian.Uint32(h.Sum(nil))) //nolint:gosec // all 32 bits, whatever their sign
}

// Hold confirms the slot that is held or, if its lock is lost, takes one. lost
// is closed when it is not certain any more that the slot is ours. The error is
// a ledger.ErrUnavailable where another try may succeed.
func (s *Slots) Hold(ctx context.Context) (slot int, lost <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.final != nil {
		return 0, nil, s.final
	}
	if s.held == nil || s.held.confirm(ctx) != nil {
		if err := s.take(ctx, noSlot); err != nil {
			return 0, nil, err
		}
	}
	return s.held.slot, s.held.lost, nil
}

// Yield exchanges the slot for the next free one: another process has been met
// in it that does not go by the lock.
func (s *Slots) Yield(ctx context.Context) (slot int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return 0, errors.New("yielding a slot: none is held")
	}
	if err := s.take(ctx, s.held.slot); err != nil {
		return 0, err
	}
	return s.held.slot, nil
}

// Close gives the slot back.
func (s *Slots) Close(ctx context.Context) error {
	s.mu.Lock()
	t := s.held
	s.held, s.final = nil, errors.New("the slot was given back")
	s.mu.Unlock()
	if t == nil {
		return nil
	}
	t.end()
	_ = t.conn.Close(ctx) // its end gives the lock back, also where it was broken already
	return nil
}

// take puts a new tenure in the place of the old one.
func (s *Slots) take(ctx context.Context, but int) error {
	t, err := s.open(ctx, s.held, but)
	if errors.Is(err, ErrPooled) {
		s.final = err
	}
	if err != nil {
		return err
	}
	if s.held != nil {
		s.held.lose()
		s.held.stop()
		_ = s.held.conn.Close(ctx) // lost already, or given up
	}
	s.held = t
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	go s.watch(watched, t)
	return nil
}

// watch looks after a tenure: the server's end of an idle connection is heard by
// asking only.
func (s *Slots) watch(ctx context.Context, t *tenure) {
	defer close(t.watched)
	tick := time.NewTicker(slotCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.look(ctx, t); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("the lock of the slot is lost", "slot", t.slot, "error", err)
				t.lose()
			}
			return
		}
	}
}

func (s *Slots) look(ctx context.Context, t *tenure) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != t {
		return ledger.ErrUnavailable // another has taken its place
	}
	err := t.confirm(ctx)
	if errors.Is(err, ErrPooled) {
		s.final = err
	}
	return err
}
