package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"dedupledger/internal/devservices"
)

func (c *campaign) anyRedis(rng *rand.Rand) *devservices.Redis {
	return c.s.redis[rng.IntN(len(c.s.redis))]
}

func killRedis(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	r := c.anyRedis(rng)
	down := between(rng, 0, 8*time.Second)
	c.note("%s for %s", r.Addr(), down.Round(time.Second))
	since := time.Now()
	return since, errors.Join(r.Kill(), hold(ctx, down), r.Start(ctx))
}

// eachRedis runs a command on all of them; one that is a replica refuses writes.
func (c *campaign) eachRedis(ctx context.Context, args ...any) (answered int) {
	for _, r := range c.s.redis {
		client := redisClient(r)
		if err := client.Do(ctx, args...).Err(); err == nil {
			answered++
		}
		_ = client.Close()
	}
	return answered
}

func flushRedis(ctx context.Context, c *campaign, _ *rand.Rand) (time.Time, error) {
	if c.eachRedis(ctx, "flushall") == 0 {
		return time.Now(), errors.New("no Redis took FLUSHALL")
	}
	return time.Now(), nil
}

func evict(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	since := time.Now()
	c.eachRedis(ctx, "config", "set", "maxmemory-policy", "allkeys-lru")
	if c.eachRedis(ctx, "config", "set", "maxmemory", "2mb") == 0 {
		return since, errors.New("no Redis took maxmemory")
	}
	err := hold(ctx, between(rng, 3*time.Second, 10*time.Second))
	c.eachRedis(ctx, "config", "set", "maxmemory", "0")
	return since, err
}

func failoverRedis(ctx context.Context, c *campaign, _ *rand.Rand) (time.Time, error) {
	since := time.Now()
	client := redisClient(c.s.sentinel)
	defer client.Close()
	if err := client.Do(ctx, "sentinel", "failover", sentinel).Err(); err != nil {
		c.note("refused: %v", err) // one is under way, or the replica is not ready
	}
	return since, nil
}

func restartPostgres(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	down := between(rng, 0, 6*time.Second)
	c.note("for %s", down.Round(time.Second))
	err := errors.Join(c.s.primary.Stop(ctx), hold(ctx, down), c.s.primary.Start(ctx))
	return time.Now(), err
}

func killPostgres(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	down := between(rng, 0, 6*time.Second)
	c.note("for %s", down.Round(time.Second))
	err := errors.Join(c.s.primary.Kill(), hold(ctx, down), c.s.primary.Start(ctx))
	return time.Now(), err
}

// promote makes the standby the primary, turns the filters to it and gives it a
// standby of its own. The moment is that of the new primary's first answer.
func (c *campaign) promote(ctx context.Context) (time.Time, error) {
	s := c.s
	if err := s.standby.Promote(ctx); err != nil {
		return time.Now(), err
	}
	if err := s.standby.SetSynchronous(ctx); err != nil {
		return time.Now(), err
	}
	s.pgMu.Lock()
	old := s.primary
	s.primary = s.standby
	s.pgMu.Unlock()
	if err := c.turn(); err != nil {
		return time.Now(), err
	}
	since := time.Now()
	c.watchFrom(ctx, since)
	return since, errors.Join(old.Close(), s.addStandby(ctx))
}

// turn sends the filters to the primary.
func (c *campaign) turn() error {
	for _, l := range c.s.pgLinks {
		if err := l.redirect(c.s.primary.Addr()); err != nil {
			return err
		}
	}
	return nil
}

func failoverPostgres(ctx context.Context, c *campaign, _ *rand.Rand) (time.Time, error) {
	if err := c.s.primary.Kill(); err != nil {
		return time.Now(), fmt.Errorf("killing PostgreSQL: %w", err)
	}
	return c.promote(ctx)
}

// failoverAsync: the standby is away for a while, commits do not wait for it, and
// then the primary is lost with all that the standby lacks.
func failoverAsync(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	s := c.s
	if err := s.primary.SetSynchronous(ctx); err != nil {
		return time.Now(), err
	}
	if err := s.standby.Kill(); err != nil {
		return time.Now(), fmt.Errorf("killing a standby: %w", err)
	}
	tail := between(rng, time.Second, 5*time.Second)
	c.note("lacks %s", tail.Round(100*time.Millisecond))
	if err := hold(ctx, tail); err != nil {
		return time.Now(), err
	}
	if err := s.primary.Kill(); err != nil {
		return time.Now(), fmt.Errorf("killing PostgreSQL: %w", err)
	}
	if err := s.standby.Start(ctx); err != nil {
		return time.Now(), err
	}
	return c.promote(ctx)
}

// restorePostgres puts the server back to a copy of some seconds ago.
func restorePostgres(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	s := c.s
	copied, err := s.primary.CopyData()
	if err != nil {
		return time.Now(), err
	}
	old := between(rng, 2*time.Second, 10*time.Second)
	c.note("%s old", old.Round(100*time.Millisecond))
	if err := hold(ctx, old); err != nil {
		return time.Now(), err
	}
	// It has what the restored server will lack, and must not come back.
	if err := s.standby.Close(); err != nil {
		return time.Now(), err
	}
	if err := s.primary.RestoreData(ctx, copied); err != nil {
		return time.Now(), err
	}
	if err := s.primary.SetSynchronous(ctx); err != nil {
		return time.Now(), err
	}
	since := time.Now()
	c.watchFrom(ctx, since)
	return since, s.addStandby(ctx)
}

func slowPostgres(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	by := 20 + rng.IntN(300)
	c.note("%d ms", by)
	return c.harm(ctx, c.s.pgLinks[:], between(rng, 2*time.Second, 10*time.Second), func(l *link) error { return l.slow(by) })
}

// harm does something to links for a while.
func (c *campaign) harm(ctx context.Context, links []*link, d time.Duration, do func(*link) error) (time.Time, error) {
	var err error
	for _, l := range links {
		err = errors.Join(err, do(l))
	}
	if err == nil {
		err = hold(ctx, d)
	}
	for _, l := range links {
		err = errors.Join(err, l.heal(ctx))
	}
	return time.Now(), err
}

func (c *campaign) kafkaLinksOf(way int) (all []*link) {
	for n := range c.s.kafkaLinks {
		all = append(all, c.s.kafkaLinks[n][way])
	}
	return all
}

// hole swallows what goes to one service, of one filter or of all.
func (c *campaign) hole(ctx context.Context, rng *rand.Rand, what string, links []*link) (time.Time, error) {
	d := between(rng, 2*time.Second, 15*time.Second)
	c.note("%s, %s", what, d.Round(time.Second))
	return c.harm(ctx, links, d, (*link).blackHole)
}

func holeKafka(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	if rng.IntN(2) == 0 {
		way := c.anyFilter(rng)
		return c.hole(ctx, rng, fmt.Sprintf("all brokers, filter by way %d", way), c.kafkaLinksOf(way))
	}
	n := rng.IntN(brokers)
	return c.hole(ctx, rng, fmt.Sprintf("broker %d, all filters", n+1), c.s.kafkaLinks[n][:])
}

func holePostgres(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	if rng.IntN(2) == 0 {
		way := c.anyFilter(rng)
		return c.hole(ctx, rng, fmt.Sprintf("filter by way %d", way), c.s.pgLinks[way:way+1])
	}
	return c.hole(ctx, rng, "all filters", c.s.pgLinks[:])
}

func holeRedis(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	return c.hole(ctx, rng, "all filters", slices.Concat(c.s.redisLinks[:]...))
}

// holeRedisOfOne: the others go on writing what this one cannot.
func holeRedisOfOne(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	way := c.anyFilter(rng)
	return c.hole(ctx, rng, fmt.Sprintf("filter by way %d", way), c.s.redisLinks[way])
}

// cutOff cuts one filter from everything.
func cutOff(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	way := c.anyFilter(rng)
	d := between(rng, 2*time.Second, 3*sessionTimeout)
	c.note("by way %d, %s", way, d.Round(time.Second))
	links := append(append(c.kafkaLinksOf(way), c.s.pgLinks[way]), c.s.redisLinks[way]...)
	return c.harm(ctx, links, d, (*link).blackHole)
}
