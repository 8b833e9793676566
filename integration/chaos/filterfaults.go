package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// sessionTimeout is that of the configuration.
const sessionTimeout = 6 * time.Second

func (c *campaign) anyFilter(rng *rand.Rand) int {
	all := c.crew.running()
	return all[rng.IntN(len(all))]
}

// anyVictim is one that may be ended.
func (c *campaign) anyVictim(rng *rand.Rand) int {
	all := c.crew.victims()
	return all[rng.IntN(len(all))]
}

func killFilter(_ context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	way := c.anyVictim(rng)
	c.note("by way %d", way)
	since := time.Now()
	if err := c.crew.kill(way); err != nil {
		return since, err
	}
	return since, c.crew.start(way)
}

func killLate(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	way := c.anyVictim(rng)
	c.note("by way %d", way)
	since := time.Now()
	if err := c.crew.kill(way); err != nil {
		return since, err
	}
	c.watchFrom(ctx, since)
	if err := hold(ctx, between(rng, sessionTimeout, 2*sessionTimeout)); err != nil {
		return since, err
	}
	return since, c.crew.start(way)
}

func zombie(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	way := c.anyFilter(rng)
	f, err := c.crew.take(way, false)
	if err != nil {
		return time.Now(), err
	}
	frozen := between(rng, sessionTimeout+time.Second, 3*sessionTimeout)
	c.note("by way %d for %s", way, frozen.Round(time.Second))
	if err := f.child.Pause(); err != nil {
		return time.Now(), fmt.Errorf("freezing a filter: %w", err)
	}
	err = hold(ctx, frozen)
	if thaw := f.child.Continue(); thaw != nil {
		return time.Now(), fmt.Errorf("thawing a filter: %w", thaw)
	}
	return time.Now(), err
}

func termFilter(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	way := c.anyVictim(rng)
	c.note("by way %d", way)
	since := time.Now()
	if err := c.crew.term(ctx, way); err != nil {
		return since, err
	}
	return since, c.crew.start(way)
}

// scale keeps between two and four filters.
func scale(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	all := c.crew.running()
	since := time.Now()
	if len(all) == ways || len(all) > 2 && rng.IntN(2) == 0 {
		way := c.anyVictim(rng)
		if rng.IntN(2) == 0 {
			c.note("in, by way %d, kill -9", way)
			return since, c.crew.kill(way)
		}
		c.note("in, by way %d", way)
		return since, c.crew.term(ctx, way)
	}
	for way := range ways {
		if !slices.Contains(all, way) {
			c.note("out, by way %d", way)
			return since, c.crew.start(way)
		}
	}
	return since, nil
}

// midRegistration stops a filter whose registration PostgreSQL is working on: it
// waits for the lock of a scope that we hold, the filter is frozen, the lock is
// given back and the registration commits while nobody hears its answer.
func midRegistration(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	db, err := c.s.asAdmin(ctx)
	if err != nil {
		return time.Now(), err
	}
	defer db.Close(context.WithoutCancel(ctx))
	tx, err := db.Begin(ctx)
	if err != nil {
		return time.Now(), fmt.Errorf("beginning a transaction: %w", err)
	}
	// In the order of the registrations, or one of them and we would each wait for
	// the other.
	if _, err := tx.Exec(ctx, `select from dedup_scope where scope in ('t0:edifact', 't1:edifact', 't0:rest') order by scope collate "C" for no key update`); err != nil {
		return time.Now(), fmt.Errorf("locking scopes: %w", err)
	}
	way := c.anyFilter(rng)
	f, err := c.crew.take(way, false)
	if err != nil {
		return time.Now(), err
	}
	// The lock of a busy scope is waited for within moments; a filter gives up
	// after lock_timeout and asks again.
	if err := hold(ctx, between(rng, 500*time.Millisecond, 3*time.Second)); err != nil {
		return time.Now(), err
	}
	if err := f.child.Pause(); err != nil {
		return time.Now(), fmt.Errorf("freezing a filter: %w", err)
	}
	err = tx.Rollback(ctx)
	frozen := between(rng, sessionTimeout/2, 2*sessionTimeout)
	c.note("by way %d for %s", way, frozen.Round(time.Second))
	if err == nil {
		err = hold(ctx, frozen)
	}
	if thaw := f.child.Continue(); thaw != nil {
		return time.Now(), fmt.Errorf("thawing a filter: %w", thaw)
	}
	return time.Now(), err
}
