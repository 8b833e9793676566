package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// cleanup is a named stack of what must be undone, last in first out. It also
// undoes a start that failed half way.
type cleanup struct {
	log   *slog.Logger
	steps []step
}

type step struct {
	name string
	undo func(context.Context) error
}

// onStop pushes what undoes an acquisition, right behind it.
func (c *cleanup) onStop(name string, undo func(context.Context) error) {
	c.steps = append(c.steps, step{name, undo})
}

// run undoes everything under one deadline, and joins what failed.
func (c *cleanup) run(ctx context.Context) error {
	var errs []error
	for _, s := range slices.Backward(c.steps) {
		c.log.Debug("stopping", "what", s.name)
		if err := s.undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", s.name, err))
		}
	}
	c.steps = nil
	return errors.Join(errs...)
}
