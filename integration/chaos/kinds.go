package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// kind of fault. It does its harm, ends it, and returns the moment from which
// recovery counts: the harm itself where something was killed and comes back, the
// end of the harm where it had to be waited for.
type kind struct {
	name string
	what string
	do   func(ctx context.Context, c *campaign, rng *rand.Rand) (since time.Time, err error)
	// loses: PostgreSQL forgets commits, so that keys may double across raw
	// partitions (ARCHITECTURE §2, law 2).
	loses bool
	// waits: what follows must not come before all partitions go on, because what
	// the fault leaves in PostgreSQL must outlast it.
	waits bool
	// ends: no filter outlives it, nor could one be spared: another tool is let at the
	// group's offsets only when the group is empty.
	ends bool
	// sentinel: needs Redis with Sentinel.
	sentinel bool
}

func kinds() []kind {
	return []kind{
		{name: "kill", what: "filter kill -9, started again at once", do: killFilter},
		{name: "kill-late", what: "filter kill -9, started after the session timeout", do: killLate},
		{name: "zombie", what: "filter SIGSTOP beyond the session timeout, SIGCONT", do: zombie},
		{name: "term", what: "filter SIGTERM, started again", do: termFilter},
		{name: "scale", what: "a filter more, or one fewer", do: scale},
		{name: "registration", what: "filter stopped in the middle of a registration", do: midRegistration},
		{name: "broker-kill", what: "broker kill -9, started again", do: killBroker},
		{name: "broker-term", what: "broker stopped and started", do: termBroker},
		{name: "leaders", what: "leaders of raw and outputs moved", do: moveLeaders},
		{name: "coordinator", what: "leaders of the group's and the transactions' topics moved", do: moveCoordinators},
		{name: "redis-kill", what: "Redis kill -9, started again empty", do: killRedis},
		{name: "flushall", what: "Redis FLUSHALL", do: flushRedis},
		{name: "eviction", what: "Redis with 2 MB, allkeys-lru", do: evict},
		{name: "sentinel", what: "failover by Sentinel", do: failoverRedis, sentinel: true},
		{name: "pg-restart", what: "PostgreSQL stopped and started", do: restartPostgres},
		{name: "pg-kill", what: "PostgreSQL kill -9, started again", do: killPostgres},
		{name: "pg-failover", what: "failover to the synchronous standby", do: failoverPostgres},
		{name: "pg-async", what: "failover to a standby that lacks the tail", do: failoverAsync, loses: true},
		{name: "pg-restore", what: "PostgreSQL restored from a copy older than Kafka's offsets", do: restorePostgres, loses: true},
		{name: "pg-latency", what: "latency to PostgreSQL", do: slowPostgres},
		{name: "hole-kafka", what: "black hole to all brokers, of one filter, or to one broker, of all", do: holeKafka},
		{name: "hole-pg", what: "black hole to PostgreSQL, of one filter or of all", do: holePostgres},
		{name: "hole-redis", what: "black hole to Redis, of all filters", do: holeRedis, sentinel: true},
		{name: "redis-one", what: "black hole to Redis, of one filter", do: holeRedisOfOne, sentinel: true},
		{name: "cut", what: "one filter cut from all services", do: cutOff},
		{name: "offsets-forward", what: "group offsets set forward by another tool, filters stopped or killed", do: offsets("forward"), ends: true},
		{name: "offsets-back", what: "group offsets set back", do: offsets("back"), ends: true},
		{name: "offsets-time", what: "group offsets set to a time", do: offsets("to a time"), ends: true},
		{name: "offsets-deleted", what: "group offsets deleted", do: offsets("deleted"), ends: true},
		{name: "outputs-gone", what: "group offsets not ours and outputs expired: held, dedup repair", do: loseOutputs, waits: true, ends: true},
		{name: "expired", what: "raw records expired before they were read: gap", do: expire, waits: true, ends: true},
		{name: "skip", what: "dedup skip: gap", do: skip, waits: true, ends: true},
		{name: "group", what: "group renamed: refused, dedup topics adopt", do: rename, waits: true, ends: true},
		{name: "recreate", what: "raw topic deleted and created again, dedup topics retire", do: recreate, waits: true, ends: true},
		{name: "grow", what: "partitions added: outputs, then raw", do: grow, waits: true, ends: true},
		{name: "truncate", what: "unclean election cuts a raw partition", do: truncate, waits: true, ends: true},
	}
}

func kindNames() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

func kindNamed(name string) (kind, bool) {
	for _, k := range kinds() {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// between draws a duration.
func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)+1))
}

// hold is how long harm lasts: part of the fault, not a wait for anything.
func hold(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
