package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// slots takes the process's number from the ledger's locks. It waits while
// PostgreSQL does not answer and says so, and it names the connections.
type slots struct {
	*app
	locks *cold.Slots
}

// Hold is processor.Slots'.
func (s slots) Hold(ctx context.Context) (slot int, lost <-chan struct{}, err error) {
	err = s.waitFor(ctx, func(ctx context.Context) error {
		slot, lost, err = s.locks.Hold(ctx)
		return err
	})
	return s.named(slot, err), lost, err
}

// Yield is processor.Slots'.
func (s slots) Yield(ctx context.Context) (slot int, err error) {
	err = s.waitFor(ctx, func(ctx context.Context) error {
		slot, err = s.locks.Yield(ctx)
		return err
	})
	return s.named(slot, err), err
}

func (s slots) waitFor(ctx context.Context, try func(context.Context) error) error {
	return s.retry(ctx, "slot", try, func(err error) bool { return errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrDenied) })
}

func (s slots) named(slot int, err error) int {
	if err == nil {
		s.number.Store(int64(slot))
		s.cold.Rename(s.connectionName(slot))
	}
	return slot
}

// connectionName is the application_name: who it is, and by which rules it makes
// keys.
func (a *app) connectionName(slot int) string {
	return fmt.Sprintf("dedup slot %d rules %s", slot, a.making.fingerprint)
}

// readSlot reads the number off the configuration or the host's name.
func (a *app) readSlot() error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host name: %w", err)
	}
	a.slot, err = a.Config.Processor.SlotOn(host)
	a.number.Store(int64(a.slot.Number))
	return err //nolint:wrapcheck // a sentence already
}

// firstName is that of connections made before the slot is known.
func (a *app) firstName() string {
	if a.slot.Auto {
		return "dedup rules " + a.making.fingerprint
	}
	return a.connectionName(a.slot.Number)
}

// takeSlot takes the first number, before anything of Kafka's is touched, where
// the configuration does not give one.
func (a *app) takeSlot(ctx context.Context) error {
	if !a.slot.Auto {
		return nil
	}
	s := slots{a, a.cold.Slots(a.Config.Kafka.Group)}
	a.cleanup.onStop("slot", s.locks.Close)
	a.slots = s
	slot, _, err := s.Hold(ctx)
	if err != nil {
		return err
	}
	a.slot.Number = slot
	a.Log.Info("slot taken", "slot", slot)
	return nil
}
