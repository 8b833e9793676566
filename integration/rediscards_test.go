package integration

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"dedupledger/internal/devservices"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestRedisFull: Redis is full, may evict nothing and refuses every write, while
// it still answers what is only read. New messages are NEW, resends of facts that
// it has and of those that it could not take are SEEN.
// Fault card: F01.
func TestRedisFull(t *testing.T) {
	t.Parallel()
	server, c := ownRedis(t)
	b := newBundle(t, setup{Redis: server.Addr(), Partitions: 1})
	f := b.start(t, 0, "DEDUP_REDIS_CIRCUIT_ERRORS=1", "DEDUP_REDIS_CIRCUIT_OPEN=50ms", patient)
	b.produce(t, orders("acme:edifact", 0, 50)...)
	b.awaitOutputs(t)
	b.awaitFacts(t, c, 50)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	// A batch that is new and known, read and written, in turns.
	known, fresh := orders("acme:edifact", 0, 50), orders("acme:edifact", 100, 50)
	var batch []message
	for i := range known {
		batch = append(batch, known[i], fresh[i])
	}
	b.produce(t, batch...)
	b.check(t)
	f.awaitMetric(t, "dedup_hot_circuit_open", nil, func(v float64) bool { return v == 1 })
	f.awaitLog(t, "OOM command not allowed")
	require.Equal(t, map[string]int{"NEW": 100, "SEEN": 200}, b.statuses(t))
	require.Len(t, b.factsOf(t, c), 50, "none was taken")

	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
	b.produce(t, orders("acme:edifact", 100, 50)...)
	b.awaitFacts(t, c, 51)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 100, "SEEN": 300}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

func (b *bundle) factsOf(t *testing.T, c *redis.Client) map[string]time.Duration {
	t.Helper()
	facts, err := b.facts(t.Context(), c)
	require.NoError(t, err)
	return facts
}

// replicaOf makes a server the replica of another (nil: of none) and waits until it
// has all that the other has.
func replicaOf(t *testing.T, c *redis.Client, primary *devservices.Redis) {
	t.Helper()
	if primary == nil {
		require.NoError(t, c.ReplicaOf(t.Context(), "NO", "ONE").Err())
		return
	}
	addr, err := primary.PeerAddr(t.Context())
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NoError(t, c.ReplicaOf(t.Context(), host, port).Err())
	until(t, "the replica follows", func(ctx context.Context) (bool, error) {
		info, err := c.Info(ctx, "replication").Result()
		return strings.Contains(info, "master_link_status:up"), err
	})
}

// TestRedisPromotedBehindItsName: a replica that lacks the last facts is promoted
// and takes the primary's name, and the old primary becomes its replica with the
// connections that it had: those are answered READONLY for as long as they live.
// Verdicts stay right, and facts come again without a restart.
// Fault cards: F02, F03.
func TestRedisPromotedBehindItsName(t *testing.T) {
	t.Parallel()
	first, a := ownRedis(t)
	second, c := ownRedis(t)
	d := startDetour(t, first.Addr())
	b := newBundle(t, setup{Redis: d.addr(), Partitions: 1})
	f := b.start(t, 0, "DEDUP_REDIS_CIRCUIT_OPEN=50ms", patient)
	b.produce(t, orders("acme:edifact", 0, 20)...)
	b.awaitFacts(t, a, 20)
	replicaOf(t, c, first)
	require.Len(t, b.factsOf(t, c), 20)
	replicaOf(t, c, nil) // cut off: the old primary still takes writes
	b.produce(t, orders("acme:edifact", 20, 20)...)
	b.awaitFacts(t, a, 40)
	require.Len(t, b.factsOf(t, c), 20, "facts that the promoted one lacks")

	d.lead(second.Addr())
	replicaOf(t, a, second)
	b.produce(t, orders("acme:edifact", 0, 60)...)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 60, "SEEN": 2*100 - 60}, b.statuses(t))
	until(t, "facts on the promoted one", func(ctx context.Context) (bool, error) {
		b.produce(t, orders("acme:edifact", 60, 1)...)
		known, err := c.Exists(ctx, b.factOf(t, order("acme:edifact", "60", 5))).Result()
		return known == 1, err
	})
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestRedisMayEvict: the start says that the policy evicts, Redis evicts, which a
// metric shows, and a resend is SEEN all the same.
// Fault card: F02.
func TestRedisMayEvict(t *testing.T) {
	t.Parallel()
	server, c := ownRedis(t)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	b := newBundle(t, setup{Redis: server.Addr(), Partitions: 1})
	f := b.start(t, 0, patient)
	f.awaitLog(t, "Redis may evict facts")
	require.Contains(t, f.text(t), "maxmemory_policy=allkeys-lru")
	b.produce(t, orders("acme:edifact", 0, 50)...)
	b.awaitFacts(t, c, 50)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	until(t, "all evicted", func(ctx context.Context) (bool, error) {
		_ = c.Set(ctx, "something", "else", time.Minute).Err() // evicts, or is refused where nothing is left
		facts, err := b.facts(ctx, c)
		return len(facts) == 0, err
	})
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
	b.produce(t, orders("acme:edifact", 0, 50)...)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 50, "SEEN": 150}, b.statuses(t))
	f.awaitMetric(t, "dedup_redis_evicted_keys", nil, func(v float64) bool { return v >= 50 })
	f.term(t)
	b.checkStopped(t)
}
