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
		{name: "hole", what: "black hole to one service, of one filter or of all", do: blackHole},
		{name: "cut", what: "one filter cut from all services", do: cutOff},
		{name: "expired", what: "raw records expired before they were read", do: expire},
		{name: "offsets", what: "group offsets set forward, back, to a time, or deleted while stopped or killed", do: setOffsets},
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
