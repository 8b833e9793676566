package hot

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/docker"
	"dedupledger/ledger"
)

// Workers that are late with the fact of a row (the row's own batch and those
// of its repeats) run against the one that closes it. Whoever has seen the
// tombstone must never see the row live again.
func TestTombstoneIsNeverReplacedNotForAMoment(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	h := open(t, addr, nil)
	for round := range 60 {
		now := clock()
		row := fact(now, "k"+strconv.Itoa(round), int64(round))
		older := fact(now, row.Key, 1_000_000)
		older.FirstSeenAt = now.Postgres.Add(-time.Second)
		raceTombstone(t, h, now, row, older)
	}
}

func raceTombstone(t *testing.T, h *Hot, now ledger.Clock, row, older ledger.Fact) {
	t.Helper()
	closed := row
	closed.Closed, closed.Inserted = true, false
	var stop atomic.Bool
	var wg sync.WaitGroup
	var late, seenLive atomic.Int64
	for _, f := range []ledger.Fact{row, older} {
		wg.Go(func() {
			for !stop.Load() {
				if _, err := h.Remember(t.Context(), now, []ledger.Fact{f, f, f}); err != nil {
					late.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		defer stop.Store(true)
		tombstone := false
		for range 60 {
			if !tombstone {
				if _, err := h.Remember(t.Context(), now, []ledger.Fact{closed}); err != nil {
					late.Add(1)
				}
			}
			got, ok, err := h.Get(t.Context(), row.Scope, row.Key)
			switch {
			case err != nil:
				late.Add(1)
			case ok && got.Closed:
				tombstone = true
			case tombstone:
				seenLive.Add(1)
			}
		}
	})
	wg.Wait()
	require.Zero(t, late.Load(), "calls failed")
	require.Zero(t, seenLive.Load(), "the row was seen live behind its tombstone")
	requireStored(t, h, closed)
}

func TestRealScriptCacheIsFlushed(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	h, raw := open(t, addr, nil), rawClient(t, addr)
	for i := range 3 {
		now := clock()
		f := fact(now, "k", int64(i))
		remember(t, h, now, f, fact(now, "n", int64(i)))
		requireStored(t, h, f)
		require.NoError(t, raw.ScriptFlush(t.Context()).Err())
	}
}

func TestRealForeignTypes(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	h, raw := open(t, addr, nil), rawClient(t, addr)
	now := clock()
	f, neighbour := fact(now, "k", 1), fact(now, "n", 2)
	key := keyOf(h.base, f.Scope, f.Key)
	require.NoError(t, raw.LPush(t.Context(), key, "x").Err())
	requireAbsent(t, h, f)
	require.Empty(t, remember(t, h, now, neighbour, f))
	requireStored(t, h, f)
	requireStored(t, h, neighbour)
	require.Positive(t, raw.PTTL(t.Context(), key).Val())
}

// F01: OOM in a pipeline is an error of the commands it hit, and no answer.
func TestF01RealRedisFull(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	h, raw := open(t, addr, nil), rawClient(t, addr)
	now := clock()
	f := fact(now, "k", 1)
	remember(t, h, now, f)
	require.NoError(t, raw.ConfigSet(t.Context(), "maxmemory", "1").Err())
	next := fact(now, "k2", 2)
	w, err := h.Remember(t.Context(), now, []ledger.Fact{next, f})
	require.Error(t, err)
	require.True(t, redis.HasErrorPrefix(errors.Unwrap(err), "OOM") || strings.Contains(err.Error(), "OOM"), err)
	require.Empty(t, w)
	requireAbsent(t, h, next)
	requireStored(t, h, f)
	require.NoError(t, raw.ConfigSet(t.Context(), "maxmemory", "0").Err())
	remember(t, h, now, next)
	requireStored(t, h, next)
}

// F02: Redis forgets without an error.
func TestF02RealRedisEmptied(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	h, raw := open(t, addr, nil), rawClient(t, addr)
	now := clock()
	f := fact(now, "k", 1)
	remember(t, h, now, f)
	require.NoError(t, raw.FlushAll(t.Context()).Err())
	requireAbsent(t, h, f)
	f.Inserted, f.RetryCount = false, 1
	require.Empty(t, remember(t, h, now, f))
	requireStored(t, h, f)
	stats, err := h.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, "noeviction", stats.Policy)
	require.False(t, stats.Evicts())
	require.Positive(t, stats.UsedMemory)
	require.Zero(t, stats.EvictedKeys)
}

// F03: after stop, restart and freeze the same client works again, the circuit
// opens meanwhile, and it is logged once each way.
func TestF03RealRedisComesBack(t *testing.T) {
	t.Parallel()
	r := realRedis(t)
	var log lines
	h := open(t, r.Addr(), func(c *Config) {
		c.Timeout = 200 * time.Millisecond
		c.Circuit = Circuit{Errors: 2, Open: 50 * time.Millisecond}
		c.Log = logTo(&log)
	})
	outages := []struct{ down, up func() error }{
		{func() error { return r.Stop(t.Context()) }, func() error { return r.Start(t.Context()) }},
		{r.Kill, func() error { return r.Start(t.Context()) }},
		{r.Pause, r.Continue},
	}
	for i, o := range outages {
		now := clock()
		f := fact(now, "k"+strconv.Itoa(i), int64(i))
		require.NoError(t, o.down())
		requireWithin(t, "the circuit opens", func() bool {
			_, err := h.Remember(t.Context(), now, []ledger.Fact{f})
			return errors.Is(err, ErrCircuitOpen)
		})
		require.True(t, h.CircuitOpen())
		require.NoError(t, o.up())
		requireWithin(t, "it works again", func() bool {
			_, err := h.Remember(t.Context(), now, []ledger.Fact{f})
			return err == nil
		})
		require.False(t, h.CircuitOpen())
		requireStored(t, h, f)
	}
	warn, info := "WARN Redis does not answer; going on without it", "INFO Redis answers again"
	require.Equal(t, []string{warn, info, warn, info, warn, info}, log.all())
}

// F03: the server is made a replica and a primary again under the same address.
func TestF03RealRedisReadOnlyForAWhile(t *testing.T) {
	t.Parallel()
	r, other := realRedis(t), realRedis(t)
	h, raw := open(t, r.Addr(), nil), rawClient(t, r.Addr())
	now := clock()
	f := fact(now, "k", 1)
	remember(t, h, now, f)
	host, port, _ := strings.Cut(other.Addr(), ":")
	require.NoError(t, raw.ReplicaOf(t.Context(), host, port).Err())
	_, err := h.Remember(t.Context(), now, []ledger.Fact{f})
	require.Error(t, err)
	require.NoError(t, raw.ReplicaOf(t.Context(), "NO", "ONE").Err())
	remember(t, h, now, f)
	requireStored(t, h, f)
}

// F04: the caller goes away in the middle; nothing of it counts against Redis.
func TestF04RealContextCancelled(t *testing.T) {
	t.Parallel()
	h := open(t, realRedis(t).Addr(), func(c *Config) { c.Circuit.Errors = 1 })
	now := clock()
	f := fact(now, "k", 1)
	ctx, cancel := contextCancelled(t)
	cancel()
	_, err := h.Remember(ctx, now, []ledger.Fact{f})
	require.Error(t, err)
	require.False(t, h.CircuitOpen())
	remember(t, h, now, f)
	requireStored(t, h, f)
}

func TestRealPasswordIsReadAgain(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	raw := rawClient(t, addr)
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o600))
	require.NoError(t, raw.ConfigSet(t.Context(), "requirepass", "first").Err())
	h := open(t, addr, func(c *Config) { c.Password = fromFile(file) })
	now := clock()
	f := fact(now, "k", 1)
	remember(t, h, now, f)
	require.NoError(t, raw.ConfigSet(t.Context(), "requirepass", "second").Err())
	require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
	require.NoError(t, raw.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
	requireWithin(t, "a connection with the new password", func() bool {
		_, err := h.Remember(t.Context(), now, []ledger.Fact{f})
		return err == nil
	})
	requireStored(t, h, f)
	require.NoError(t, os.Remove(file))
	other := open(t, addr, func(c *Config) { c.Password = fromFile(file) })
	_, _, err := other.Get(t.Context(), f.Scope, f.Key)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func password(text string) func() (string, error) {
	return func() (string, error) { return text, nil }
}

func fromFile(file string) func() (string, error) {
	return func() (string, error) {
		text, err := os.ReadFile(file)
		return strings.TrimSpace(string(text)), err
	}
}

// A login that is refused is told as such by a batch, too.
func TestRealLoginRefused(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	setUser(t, rawClient(t, addr), "dedup", Rules("dedup:", false)...)
	h := open(t, addr, func(c *Config) { c.Username, c.Password = "dedup", password("wrong") })
	now := clock()
	_, err := h.Remember(t.Context(), now, []ledger.Fact{fact(now, "k", 1)})
	require.True(t, redis.IsAuthError(err), err)
}

func TestRealStatsRefused(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	raw := rawClient(t, addr)
	require.NoError(t, raw.Do(t.Context(), "ACL", "SETUSER", "dedup", "on", ">p", "~*", "+@all", "-info").Err())
	h := open(t, addr, func(c *Config) { c.Username, c.Password = "dedup", password("p") })
	_, err := h.Stats(t.Context())
	require.Error(t, err)
	now := clock()
	f := fact(now, "k", 1)
	remember(t, h, now, f)
	requireStored(t, h, f)
}

func TestOpenNeedsNoRedis(t *testing.T) {
	t.Parallel()
	h := open(t, "127.0.0.1:1", func(c *Config) { c.Timeout = 50 * time.Millisecond })
	now := clock()
	w, err := h.Remember(t.Context(), now, []ledger.Fact{fact(now, "k", 1)})
	require.Error(t, err)
	require.Empty(t, w)
	_, ok, err := h.Get(t.Context(), "t:f", "k")
	require.Error(t, err)
	require.False(t, ok)
}

// BenchmarkRemember is one batch of 2000 facts against a real Redis. Bytes per
// fact are what Redis's used memory grew by, divided by the facts.
func BenchmarkRemember(b *testing.B) {
	s, err := devservices.New(b.Context(), devservices.Options{Connect: docker.Connect})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	r, err := s.StartRedis(b.Context())
	require.NoError(b, err)
	h, err := Open(Config{Addrs: []string{r.Addr()}, Prefix: "dedup:", LedgerID: "0190a3c4-7d1e-7b6a-9c55-0f2d7c1e8a90", Timeout: 10 * time.Second})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, h.Close()) })
	before, err := h.Stats(b.Context())
	require.NoError(b, err)
	facts, n := make([]ledger.Fact, 2000), 0
	for b.Loop() {
		now := clock()
		for i := range facts {
			facts[i] = fact(now, strconv.Itoa(n), int64(n))
			n++
		}
		_, err := h.Remember(b.Context(), now, facts)
		require.NoError(b, err)
	}
	after, err := h.Stats(b.Context())
	require.NoError(b, err)
	b.ReportMetric(float64(after.UsedMemory-before.UsedMemory)/float64(n), "B/fact")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "facts/s")
}
