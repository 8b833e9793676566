package integration

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"dedupledger/integration/laws"
	"dedupledger/internal/devservices"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// patient lets the filter wait for Redis on a busy machine: a batch of facts that
// comes too late is dropped, which is right and not what these tests are about.
const patient = "DEDUP_REDIS_TIMEOUT=3s"

// ownRedis is a Redis that a test may stop and empty.
func ownRedis(t *testing.T) (*devservices.Redis, *redis.Client) {
	t.Helper()
	r, err := shared.services.StartRedis(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r, redisClient(t, r.Addr())
}

func redisClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// facts are the bundle's keys in Redis and what is left of their lives.
func (b *bundle) facts(ctx context.Context, c *redis.Client) (map[string]time.Duration, error) {
	left := map[string]time.Duration{}
	keys := c.Scan(ctx, 0, b.redisPrefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		d, err := c.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			return nil, err
		}
		left[keys.Val()] = d
	}
	return left, keys.Err()
}

// awaitFacts waits until Redis holds so many.
func (b *bundle) awaitFacts(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	until(t, "facts in Redis", func(ctx context.Context) (bool, error) {
		facts, err := b.facts(ctx, c)
		return len(facts) >= n, err
	})
}

// TestRedisDownAtStart: the filter starts, is ready, and facts come once Redis
// is there.
// Fault card: F01.
func TestRedisDownAtStart(t *testing.T) {
	t.Parallel()
	server, c := ownRedis(t)
	require.NoError(t, server.Stop(t.Context()))
	b := newBundle(t, setup{Redis: server.Addr()})
	f := b.start(t, 0, "DEDUP_REDIS_CIRCUIT_ERRORS=1")
	b.produce(t, orders("acme:edifact", 0, 100)...)
	b.check(t)
	f.awaitMetric(t, "dedup_hot_circuit_open", nil, func(v float64) bool { return v == 1 })
	code, body, err := f.get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Equal(t, 200, code)
	require.Contains(t, body, "down, verdicts unaffected")

	require.NoError(t, server.Start(t.Context()))
	until(t, "facts after Redis came", func(ctx context.Context) (bool, error) {
		b.produce(t, order("acme:edifact", "again", 5))
		facts, err := b.facts(ctx, c)
		return len(facts) > 0, err
	})
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestRedisGoesAndComes: stopped, frozen, killed and back, under load.
// Fault card: F01.
func TestRedisGoesAndComes(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	server, c := ownRedis(t)
	b := newBundle(t, setup{Redis: server.Addr()})
	f := b.start(t, 0, "DEDUP_REDIS_CIRCUIT_OPEN=200ms", "DEDUP_PROCESSOR_BATCH_RECORDS=100")
	l := b.startLoad(t, rng, "r", 8)
	down := func() {
		f.awaitMetric(t, "dedup_hot_circuit_open", nil, func(v float64) bool { return v == 1 })
		l.passMore(t, 500)
		require.Equal(t, 200, must(f.get(t.Context(), "/readyz")))
	}
	l.passMore(t, 300)
	require.NoError(t, server.Stop(t.Context()))
	down()
	require.NoError(t, server.Start(t.Context()))
	b.awaitFacts(t, c, 1)
	require.NoError(t, server.Pause())
	down()
	require.NoError(t, server.Continue())
	f.awaitMetric(t, "dedup_hot_circuit_open", nil, func(v float64) bool { return v == 0 })
	l.passMore(t, 300)
	require.NoError(t, server.Kill())
	down()
	require.NoError(t, server.Start(t.Context()))
	b.awaitFacts(t, c, 1)
	l.end(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// must is the code of an answer that is there.
func must(code int, _ string, err error) int {
	if err != nil {
		return 0
	}
	return code
}

// TestRedisEmptiedInAWindow: a resend in the window is SEEN although Redis forgot
// it, and behind the window's end the key is free although Redis is empty.
// Fault card: F02.
func TestRedisEmptiedInAWindow(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second // a round trip's many times, on a busy machine too
	server, c := ownRedis(t)
	b := newBundle(t, setup{Redis: server.Addr(), Partitions: 1, Flows: `- {match: "acme:short", window: 10s}`})
	f := b.start(t, 0, patient)
	short := func() message {
		m := keyed("acme:short", "k", []byte("x"))
		m.Want.Window = window
		return m
	}
	for round := range 2 {
		b.produce(t, short())
		b.awaitFacts(t, c, 1)
		require.NoError(t, c.FlushAll(t.Context()).Err())
		b.produce(t, short(), short())
		b.awaitOutputs(t)
		b.awaitSQL(t, `select clock_timestamp() > max(expires_at) from dedup_ledger`)
		require.NoError(t, c.FlushAll(t.Context()).Err())
		require.Equal(t, round+1, b.statuses(t)["NEW"])
	}
	b.produce(t, short())
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 3, "SEEN": 4}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// TestRowDeletedWhileItsFactLives: Postgres decides, so the resend is NEW; the
// fact is a witness that is counted and logged.
func TestRowDeletedWhileItsFactLives(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	c := redisClient(t, shared.services.RedisAddr)
	f := b.start(t, 0, patient)
	b.produce(t, order("acme:edifact", "1", 5), order("acme:edifact", "2", 5))
	b.awaitFacts(t, c, 2)
	b.asOwner(t, `delete from dedup_ledger where key like '%/1'`)
	b.produce(t, order("acme:edifact", "1", 5), order("acme:edifact", "2", 5))
	b.awaitOutputs(t)

	o, err := b.observe(t.Context())
	require.NoError(t, err)
	require.Len(t, laws.LawTwo(o), 1, "the harm is seen by the checker: Postgres forgot, so one key is in clean twice")
	for _, law := range []func(*observation) []error{laws.LawOne, laws.NothingLost, laws.Verdicts, laws.Repeats, laws.OrderKept, laws.Untouched, laws.OurHeaders, laws.HoursClose} {
		require.Empty(t, law(o))
	}
	require.Equal(t, map[string]int{"NEW": 3, "SEEN": 1}, b.statuses(t))
	f.awaitMetric(t, "dedup_hot_disagreements_total", []string{`gate="kafka"`}, func(v float64) bool { return v == 1 })
	f.awaitLog(t, "Redis held live facts")
	b.awaitSQL(t, `select witness_kafka = 1 and witness_api = 0 and witness_last_at is not null and witness_last like 'kafka:%/0/%' from dedup_meta`)
	log, err := os.ReadFile(f.log)
	require.NoError(t, err)
	require.NotContains(t, string(log), laws.EDISender, "a key is the partner's data")
	f.term(t)
}

// onItsWay is how late a fact may arrive: patient's timeout and what each fact of
// a batch adds to it. A TTL is relative, so it ends as much later.
const onItsWay = 4 * time.Second

// TestFactsLiveNoLongerThanTheirWindow: every key of the prefix has a TTL, at
// most what is left of the row's window, also when a resend writes it again.
// There is one per live row.
func TestFactsLiveNoLongerThanTheirWindow(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Flows: `- {match: "acme:short", window: 1s}
- {match: "acme:minute", window: 1m}`})
	c := redisClient(t, shared.services.RedisAddr)
	f := b.start(t, 0, patient)
	with := func(flow, key string, window time.Duration) message {
		m := keyed(flow, key, []byte("x"))
		m.Want.Window = window
		return m
	}
	b.produce(t, traffic(rng, "f", 1000)...)
	b.produce(t, with("acme:short", "gone", time.Second), with("acme:minute", "again", time.Minute), with("acme:minute", "once", time.Minute))
	b.awaitOutputs(t)
	b.awaitSQL(t, `select bool_and(expires_at < clock_timestamp() + interval '50 seconds') from dedup_ledger where flow in ('minute', 'short')`)
	b.produce(t, with("acme:minute", "again", time.Minute))
	b.awaitOutputs(t)
	rest := b.restOfWindows(t) // read first: what is left only shrinks
	b.awaitFacts(t, c, len(rest))
	facts, err := b.facts(t.Context(), c)
	require.NoError(t, err)
	for key, left := range facts {
		require.Contains(t, rest, key)
		require.Positive(t, left, "a key without a TTL: %s", key)
		require.LessOrEqual(t, left, rest[key]+onItsWay)
		require.LessOrEqual(t, left, ediWindow)
	}
	require.Len(t, facts, len(rest), "one per live row")
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// restOfWindows is what is left of each live row's window, by the key of its
// fact as ledger/hot documents it.
func (b *bundle) restOfWindows(t *testing.T) map[string]time.Duration {
	t.Helper()
	id := ask[string](t, b, `select ledger_id::text from dedup_meta`)
	rest := map[string]time.Duration{}
	require.NoError(t, b.query(t.Context(), `select scope, key, extract(epoch from expires_at - clock_timestamp())::float8
		from dedup_ledger where expires_at > clock_timestamp()`, func(r pgx.Rows) error {
		var scope, key string
		var left float64
		err := r.Scan(&scope, &key, &left)
		rest[b.factKey(id, scope, key)] = time.Duration(left * float64(time.Second))
		return err
	}))
	return rest
}

// TestRedisNeverReached: the filter is ready without Redis, and does not say of one
// that it has not reached that it is well, before there is a message or after.
func TestRedisNeverReached(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0, "DEDUP_REDIS_ADDRS="+l.Addr().String())
	says := func(what string) string {
		code, body, err := f.get(t.Context(), "/readyz")
		require.NoError(t, err)
		require.Equal(t, 200, code, body)
		require.NotContains(t, body, `"redis":"ok"`, what)
		return body
	}
	says("at the first look")
	until(t, "the first call has failed", func(context.Context) (bool, error) {
		return strings.Contains(says("idle"), `"redis":"no answer to the last call (`), nil
	})
	for i := range 10 {
		b.produce(t, orders("acme:edifact", i, 1)...)
		b.awaitOutputs(t)
	}
	until(t, "down", func(context.Context) (bool, error) {
		return strings.Contains(says("at work"), `"redis":"down, verdicts unaffected"`), nil
	})
	t.Log(strings.TrimSpace(says("at the end")))
	b.check(t)
	f.term(t)
	b.checkStopped(t)
	// One that answers is well, once it has.
	f = b.start(t, 0)
	until(t, "ok", func(ctx context.Context) (bool, error) {
		_, body, err := f.get(ctx, "/readyz")
		return strings.Contains(body, `"redis":"ok"`), err
	})
	f.term(t)
}

// factKey is the key of a fact in Redis, as docs/tables.md has it.
func (b *bundle) factKey(ledgerID, scope, key string) string {
	sum := sha256.Sum256([]byte(scope + "\x00" + key))
	return b.redisPrefix + ledgerID + ":" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// factOf is the key of a message's fact.
func (b *bundle) factOf(t *testing.T, m message) string {
	t.Helper()
	return b.factKey(ask[string](t, b, `select ledger_id::text from dedup_meta`), m.Key, m.Want.Key)
}
