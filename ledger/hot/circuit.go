package hot

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrCircuitOpen is answered without asking Redis while it is taken for down.
var ErrCircuitOpen = errors.New("hot: Redis is not answering, circuit open")

// Circuit says when Redis is taken for down, and for how long.
type Circuit struct {
	Errors int           // consecutive failed calls that open it; 0 means 5
	Open   time.Duration // then one call is let through; 0 means 2 s
}

// circuit keeps a Redis that is down or slow from costing a timeout per call.
//
//	closed --Errors failures in a row--> open --Open passed, one probe--> closed or open
type circuit struct {
	cfg Circuit
	now func() time.Time
	log *slog.Logger

	mu      sync.Mutex
	errors  int // in a row, while closed
	open    bool
	until   time.Time // while open: no call before
	probing bool      // while open: the probe is out
}

// allow says whether a call may be made, and whether it is the probe. Each
// allowed call ends with done.
func (c *circuit) allow() (probe, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return false, true
	}
	if c.probing || c.now().Before(c.until) {
		return false, false
	}
	c.probing = true
	return true, true
}

// done takes the outcome of an allowed call. A call that began before the
// circuit opened and ends after it says nothing about Redis now: only the probe
// moves an open circuit.
func (c *circuit) done(ctx context.Context, probe bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case probe:
		c.probed(ctx, err)
	case c.open, errors.Is(err, context.Canceled):
	case err == nil:
		c.errors = 0
	default:
		c.errors++
		if c.errors >= c.cfg.Errors {
			c.open, c.until = true, c.now().Add(c.cfg.Open)
			c.log.WarnContext(ctx, "Redis does not answer; going on without it", "errors", c.errors, "error", err)
		}
	}
}

func (c *circuit) probed(ctx context.Context, err error) {
	c.probing = false
	switch {
	case err == nil:
		c.open, c.errors = false, 0
		c.log.InfoContext(ctx, "Redis answers again")
	case errors.Is(err, context.Canceled): // the caller went away: the next call probes
	default:
		c.until = c.now().Add(c.cfg.Open)
	}
}

func (c *circuit) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}
