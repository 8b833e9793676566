package crash

import (
	"context"
	"fmt"
	"runtime"

	"dedupledger/ledger"
)

// callee is the ledger as a process sees it: the real one, behind points at
// which a call fails, hangs, or loses its answer.
type callee struct{ p *process }

// registrar puts the tiers together as the program does.
type registrar struct {
	*ledger.Tiers
	cold *callee
}

func (r registrar) Reject(ctx context.Context, c ledger.Claim, reg *ledger.Registration, reason string) error {
	return r.cold.Reject(ctx, c, reg, reason)
}

func unavailable(what string) error { return fmt.Errorf("crash: %s: %w", what, ledger.ErrUnavailable) }

// call makes one, and what is to happen before and behind it.
func (c *callee) call(ctx context.Context, name string, do func(context.Context) error) error {
	p := c.p
	p.alive()
	follows := p.following()
	asked := p.lane.traps.pass(before + name)
	switch {
	case asked == die:
		p.kill()
		runtime.Goexit()
	case asked == fail || follows == fail:
		return unavailable(name)
	case asked == hang:
		p.stand(name)
		p.alive()
	case asked == cancel:
		ended, stop := context.WithTimeout(ctx, p.lane.duration(moment/20))
		defer stop()
		ctx = ended
	}
	err := do(ctx)
	p.alive()
	answered := p.lane.traps.pass(name + behind)
	switch {
	case answered == die:
		p.kill()
		runtime.Goexit()
	case answered == lose || follows == lose:
		return unavailable(name + ", answer lost")
	case answered == hang:
		p.stand(name)
		p.alive()
	case answered == cancel:
		p.stop()
	}
	return err
}

// Register is the one that decides.
func (c *callee) Register(ctx context.Context, chunk *ledger.Chunk) (a *ledger.Answer, err error) {
	err = c.call(ctx, "Register", func(ctx context.Context) (err error) {
		a, err = c.p.lane.world.cold.Register(ctx, chunk)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Reject closes a row.
func (c *callee) Reject(ctx context.Context, claim ledger.Claim, r *ledger.Registration, reason string) error {
	return c.call(ctx, "Reject", func(ctx context.Context) error {
		return c.p.lane.world.cold.Reject(ctx, claim, r, reason)
	})
}

// Claim writes a claim.
func (c *callee) Claim(ctx context.Context, k ledger.PositionKey, claim ledger.Claim) (row ledger.PositionRow, found bool, err error) {
	err = c.call(ctx, "Claim", func(ctx context.Context) (err error) {
		row, found, err = c.p.lane.world.cold.Claim(ctx, k, claim)
		return err
	})
	return row, found, err
}

// OpenPosition makes a row.
func (c *callee) OpenPosition(ctx context.Context, k ledger.PositionKey, claim ledger.Claim, start ledger.Position, out ledger.Outputs) (made bool, err error) {
	err = c.call(ctx, "OpenPosition", func(ctx context.Context) (err error) {
		made, err = c.p.lane.world.cold.OpenPosition(ctx, k, claim, start, out)
		return err
	})
	return made, err
}

// Flush writes W.
func (c *callee) Flush(ctx context.Context, as []ledger.Advance) error {
	return c.call(ctx, "Flush", func(ctx context.Context) error { return c.p.lane.world.cold.Flush(ctx, as) })
}

// Learn takes a lesson.
func (c *callee) Learn(ctx context.Context, l *ledger.Lesson) (seq int64, d ledger.Position, err error) {
	err = c.call(ctx, "Learn", func(ctx context.Context) (err error) {
		seq, d, err = c.p.lane.world.cold.Learn(ctx, l)
		return err
	})
	return seq, d, err
}

// RecordGap writes down what is gone.
func (c *callee) RecordGap(ctx context.Context, now *ledger.Advance, g *ledger.Gap) (fresh bool, err error) {
	err = c.call(ctx, "RecordGap", func(ctx context.Context) (err error) {
		fresh, err = c.p.lane.world.cold.RecordGap(ctx, now, g)
		return err
	})
	return fresh, err
}

// Hold tells why a partition is not consumed.
func (c *callee) Hold(ctx context.Context, p ledger.Partition, claim ledger.Claim, reason, why string) (kept bool, err error) {
	err = c.call(ctx, "Hold", func(ctx context.Context) (err error) {
		kept, err = c.p.lane.world.cold.Hold(ctx, p, claim, reason, why)
		return err
	})
	return kept, err
}

// Former looks for topics that are gone.
func (c *callee) Former(ctx context.Context, k ledger.PositionKey) (former []ledger.Standing, err error) {
	err = c.call(ctx, "Former", func(ctx context.Context) (err error) {
		former, err = c.p.lane.world.cold.Former(ctx, k)
		return err
	})
	return former, err
}

// Remember tells Redis, from the tiers' own goroutine.
func (c *callee) Remember(ctx context.Context, now ledger.Clock, facts []ledger.Fact) (ws []ledger.Witness, err error) {
	err = c.call(ctx, "Remember", func(ctx context.Context) (err error) {
		ws, err = c.p.lane.world.hot.Remember(ctx, now, facts)
		return err
	})
	return ws, err
}

// Get asks Redis. Nothing of the filter does: a control that breaks it would.
func (c *callee) Get(ctx context.Context, scope, key string) (ledger.Fact, bool, error) {
	return c.p.lane.world.hot.Get(ctx, scope, key) //nolint:wrapcheck // stands for it
}
