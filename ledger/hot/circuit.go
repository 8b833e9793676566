package hot

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
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
	cfg   Circuit
	now   func() time.Time
	log   *slog.Logger
	grant string // the command that gives a user the rights it needs
	// explain gives an error of a connection a sentence with the repair, or "".
	explain func(error) string

	mu      sync.Mutex
	reached bool // it has taken a call once
	errors  int  // in a row, while closed
	open    bool
	until   time.Time // while open: no call before
	probing bool      // while open: the probe is out
	why     error     // the last failure, while there is no success after it
	words   string    // its sentence, or ""
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
		c.reached, c.errors, c.why, c.words = true, 0, nil, ""
	default:
		c.errors++
		c.why, c.words = err, c.explain(err)
		// A right that is missing is missing for the next call, too.
		if refused := redis.IsPermissionError(err); refused || c.errors >= c.cfg.Errors {
			c.open, c.until = true, c.now().Add(c.cfg.Open)
			c.tell(ctx, refused)
		}
	}
}

func (c *circuit) tell(ctx context.Context, refused bool) {
	if refused {
		c.log.WarnContext(ctx, "Redis refuses a command to this user; going on without it", "error", c.why, "grant", c.grant)
		return
	}
	if c.words != "" {
		c.log.WarnContext(ctx, "Redis refuses the connection; going on without it", "why", c.words, "error", c.why)
		return
	}
	c.log.WarnContext(ctx, "Redis does not answer; going on without it", "errors", c.errors, "error", c.why)
}

func (c *circuit) probed(ctx context.Context, err error) {
	c.probing = false
	switch {
	case err == nil:
		c.reached, c.open, c.errors, c.why, c.words = true, false, 0, nil, ""
		c.log.InfoContext(ctx, "Redis answers again")
	case errors.Is(err, context.Canceled): // the caller went away: the next call probes
	default:
		// What keeps Redis away may change meanwhile: down, then up with a user
		// who may not. Said once, as it would be on its own.
		refused := redis.IsPermissionError(err)
		words := c.explain(err)
		changed := refused && !redis.IsPermissionError(c.why) || words != "" && words != c.words
		c.until, c.why, c.words = c.now().Add(c.cfg.Open), err, words
		if changed {
			c.tell(ctx, refused)
		}
	}
}

func (c *circuit) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

func (c *circuit) trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.why == nil && !c.reached:
		return "not asked yet"
	case c.why == nil:
		return ""
	case redis.IsPermissionError(c.why):
		return "refused: " + c.why.Error()
	case c.words != "":
		return "refused: " + c.words
	case c.open:
		return "down"
	default:
		return "no answer to the last call (" + c.why.Error() + ")"
	}
}
