package processor

import (
	"context"
	"errors"
	"fmt"
)

// Slots numbers the processes of a group by a lock that each holds. Both calls
// wait while the ledger does not answer, until ctx ends.
type Slots interface {
	// Hold confirms the slot that is held or, if its lock is lost, takes a free
	// one. lost is closed when it is not certain any more that the slot is ours.
	Hold(ctx context.Context) (slot int, lost <-chan struct{}, err error)
	// Yield exchanges the slot for another that is free.
	Yield(ctx context.Context) (slot int, err error)
}

// errMoved says that the process has another slot now: its sessions are opened
// again under it.
var errMoved = errors.New("processor: another slot")

// underSlot runs the sessions as long as the process has one slot.
//
// A lock can be lost without its holder's knowing, so two processes can take one
// slot for theirs. No law rests on the lock: it only keeps processes apart that
// would otherwise fence each other for ever. What happens then:
//
//	A holds slot 0. Its connection dies; A is not told (a machine that
//	stood still, a network that drops packets).
//	PostgreSQL ends the connection: the lock is free.
//	B starts, takes slot 0, asks for the producer ids g-0-i: A's open
//	transactions are aborted, and no later one of A's can commit (KIP-98).
//	B joins as static member g-0-i: the coordinator fences A's members
//	(KIP-345), so no offset of A's is taken, and B gets A's partitions.
//	B applies the position rule and writes its claims: a chunk that A still
//	sends is refused (the claim).
//	A hears of the first of these that it runs into. Before it opens a session
//	again it confirms its lock (Hold), finds it lost, and takes another slot;
//	so it never takes the identity back from B.
//
// The last step has a hole: A confirms, then its connection dies, B takes the
// slot and opens, then A opens and fences B. B, which holds the lock, does not
// fight for the name: it exchanges its slot for another (Yield). A finds its lock
// lost with the next look. Both are alone again. The same holds where a process
// of the group was started with a number: it does not go by the locks.
//
// While the lock is lost and the ledger away, sessions go on under the slot:
// they cannot register anything anyhow.
func (p *Processor) underSlot(stop, work context.Context) error {
	if p.cfg.Slots == nil {
		return p.runSessions(stop, work)
	}
	slot, lost, err := p.cfg.Slots.Hold(stop)
	if err != nil {
		return p.slotError(stop, err)
	}
	p.slot.Store(int64(slot))
	ctx, cancel := context.WithCancelCause(stop)
	kept := make(chan error, 1)
	go func() {
		err := p.keepSlot(ctx, slot, lost)
		cancel(err)
		kept <- err
	}()
	err = p.runSessions(ctx, work)
	cancel(nil)
	moved := <-kept
	switch replaced := errors.Is(err, ErrReplaced); {
	case err != nil && !replaced:
		return err
	case stop.Err() != nil:
		return nil //nolint:nilerr // ErrReplaced: there is no place to find any more
	case moved != nil:
		return moved
	case replaced:
		return p.yieldSlot(stop, slot, err)
	}
	return nil
}

// keepSlot waits for the loss of the lock and takes a slot anew. It returns when
// that is another one.
func (p *Processor) keepSlot(ctx context.Context, slot int, lost <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-lost:
		}
		now, l, err := p.cfg.Slots.Hold(ctx)
		switch {
		case err != nil:
			return p.slotError(ctx, err)
		case now != slot:
			p.cfg.Log.Warn("the slot went to another process; the sessions are opened again under the next free one", "slot", now, "was", slot)
			return errMoved
		}
		p.cfg.Log.Info("the lock of the slot is held again; the sessions go on", "slot", slot)
		lost = l
	}
}

// yieldSlot leaves the slot to the process that was met in it.
func (p *Processor) yieldSlot(ctx context.Context, slot int, met error) error {
	now, _, err := p.cfg.Slots.Hold(ctx)
	if err == nil && now == slot {
		now, err = p.cfg.Slots.Yield(ctx)
	}
	if err != nil {
		return p.slotError(ctx, err)
	}
	p.cfg.Log.Warn("another process works under this slot; the sessions are opened again under the next free one", "slot", now, "was", slot, "error", met)
	return errMoved
}

func (p *Processor) slotError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // told to stop while waiting for a slot
	}
	return fmt.Errorf("taking a slot: %w", err)
}

// confirmSlot is asked before a session is opened again: whether the identity it
// would take is still this process's.
func (p *Processor) confirmSlot(ctx context.Context) error {
	if p.cfg.Slots == nil {
		return nil
	}
	slot, _, err := p.cfg.Slots.Hold(ctx)
	switch {
	case err != nil:
		return p.slotError(ctx, err)
	case int64(slot) != p.slot.Load():
		return ErrReplaced
	}
	return nil
}
