package ledgertest_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/docker"
	"dedupledger/ledger"
	"dedupledger/ledger/cold"
	"dedupledger/ledger/hot"
	"dedupledger/ledger/ledgertest"
	"dedupledger/migrations"
)

const prefix = "dedup:"

// server is where this run's databases are made.
var server *devservices.Services

func TestMain(m *testing.M) {
	hot.RouteLibraryLog(slog.New(slog.DiscardHandler))
	code := run(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func run(m *testing.M) int {
	s, err := devservices.New(context.Background(), devservices.Options{Connect: docker.Connect})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server = s
	if server.PostgresURL = os.Getenv(devservices.EnvPostgres); server.PostgresURL == "" {
		// Nothing here tests what survives a crash of the machine.
		p, err := server.StartPostgres(context.Background(), "fsync=off")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		server.PostgresURL = p.URL()
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var databases atomic.Int64

// database is a migrated one of this test alone.
func database(t *testing.T) *devservices.Database {
	t.Helper()
	d, err := server.CreateDatabase(t.Context(), fmt.Sprintf("ledgertest_%d_%d", os.Getpid(), databases.Add(1)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Drop(context.WithoutCancel(t.Context()))) })
	require.NoError(t, migrations.Up(t.Context(), d.OwnerURL, migrations.Options{}))
	return d
}

// twoTiers is the ledger under test: real PostgreSQL, and what a variant makes of
// Redis.
type twoTiers struct {
	*ledger.Tiers
	cold *cold.Ledger
	pool *pgxpool.Pool // the owner's: to read accounts, and to play a Postgres that forgets
}

func (l *twoTiers) Claim(ctx context.Context, k ledger.PositionKey, c ledger.Claim) (ledger.PositionRow, bool, error) {
	return l.cold.Claim(ctx, k, c)
}

func (l *twoTiers) OpenPosition(ctx context.Context, k ledger.PositionKey, c ledger.Claim, start ledger.Position, out ledger.Outputs) (bool, error) {
	return l.cold.OpenPosition(ctx, k, c, start, out)
}

func (l *twoTiers) Accounts(ctx context.Context) (ledgertest.Accounts, error) {
	rows, err := l.pool.Query(ctx, "select scope, status, sum(count)::bigint from dedup_hour group by 1, 2")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	verdicts := map[string]ledger.Verdict{}
	for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Drift, ledger.Invalid} {
		verdicts[v.String()] = v
	}
	out := ledgertest.Accounts{}
	for rows.Next() {
		var scope, status string
		var n int64
		if err := rows.Scan(&scope, &status, &n); err != nil {
			return nil, err
		}
		if out[scope] == nil {
			out[scope] = map[ledger.Verdict]int64{}
		}
		out[scope][verdicts[status]] += n
	}
	return out, rows.Err()
}

func openCold(t *testing.T) (*cold.Ledger, *pgxpool.Pool) {
	t.Helper()
	d := database(t)
	c, err := cold.Open(t.Context(), cold.Config{URL: d.AppURL, MaxConns: 6})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	pool, err := pgxpool.New(t.Context(), d.OwnerURL)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return c, pool
}

// memory is a variant's Redis: how to reach it, and its own client for mischief;
// raw is nil where there is no server.
type memory struct {
	hot *hot.Hot
	raw *redis.Client
}

func openHot(t *testing.T, c *cold.Ledger, addr string, timeout time.Duration) *hot.Hot {
	t.Helper()
	h, err := hot.Open(hot.Config{
		Addrs: []string{addr}, Prefix: prefix, LedgerID: c.ID().String(), Timeout: timeout,
		Circuit: hot.Circuit{Open: 100 * time.Millisecond},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

func startRedis(t *testing.T) (addr string, raw *redis.Client) {
	t.Helper()
	s, err := devservices.New(t.Context(), devservices.Options{Connect: docker.Connect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r, err := s.StartRedis(t.Context())
	require.NoError(t, err)
	raw = redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	return r.Addr(), raw
}

func openTiers(t *testing.T, open func(*testing.T, *cold.Ledger) memory) (*twoTiers, memory) {
	t.Helper()
	c, pool := openCold(t)
	m := open(t, c)
	// A nil *hot.Hot in the interface would not be nil.
	cfg := ledger.TiersConfig{Cold: c, Witnesses: c}
	if m.hot != nil {
		cfg.Hot = m.hot
	}
	l := &twoTiers{Tiers: ledger.NewTiers(cfg), cold: c, pool: pool}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l, m
}

// healthy is a Redis that works, with a timeout no busy machine reaches.
func healthy(t *testing.T, c *cold.Ledger) memory {
	t.Helper()
	addr, raw := startRedis(t)
	return memory{openHot(t, c, addr, 5*time.Second), raw}
}

// The load of each variant: together more than a million registrations.
func load() ledgertest.Load {
	l := ledgertest.DefaultLoad()
	l.Sequential, l.Racing = 30_000/shrink, 120_000/shrink
	return l
}

// Law 4: whatever Redis says or does not say, every answer is the same.
func TestTwoTiersRedisUp(t *testing.T) {
	t.Parallel()
	var l *twoTiers
	load().Exercise(t, func(t *testing.T) ledgertest.Ledger {
		l, _ = openTiers(t, healthy)
		return l
	})
	require.NoError(t, l.Close(t.Context()))
	stats := l.Stats()
	require.Empty(t, stats.Witnesses, "a Redis that is never wrong was taken for a witness")
	require.Zero(t, stats.Failed)
	require.Positive(t, stats.Remembered)
}

// Fault card: F01.
func TestTwoTiersRedisDown(t *testing.T) {
	t.Parallel()
	var l *twoTiers
	load().Exercise(t, func(t *testing.T) ledgertest.Ledger {
		l, _ = openTiers(t, func(t *testing.T, c *cold.Ledger) memory {
			// Not one of devservices.FreePort: a server of another test could take it meanwhile.
			return memory{hot: openHot(t, c, "127.0.0.1:1", 50*time.Millisecond)}
		})
		return l
	})
	require.NoError(t, l.Close(t.Context()))
	// Remembered and over are two: on a slow machine the windows of a whole batch
	// end before it is told of.
	require.Zero(t, l.Stats().Remembered)
	require.Positive(t, l.Stats().Failed)
}

// Fault card: F02.
func TestTwoTiersRedisEmptied(t *testing.T) {
	t.Parallel()
	var l *twoTiers
	load().Exercise(t, func(t *testing.T) ledgertest.Ledger {
		var m memory
		l, m = openTiers(t, healthy)
		disturb(t, m.raw, empty)
		return l
	})
	require.Empty(t, l.Stats().Witnesses)
}

// Fault card: F02.
func TestTwoTiersRedisStale(t *testing.T) {
	t.Parallel()
	load().Exercise(t, func(t *testing.T) ledgertest.Ledger {
		l, m := openTiers(t, healthy)
		disturb(t, m.raw, stale())
		return l
	})
}

func TestTwoTiersRedisLying(t *testing.T) {
	t.Parallel()
	var l *twoTiers
	load().Exercise(t, func(t *testing.T) ledgertest.Ledger {
		var m memory
		l, m = openTiers(t, healthy)
		disturb(t, m.raw, lie)
		return l
	})
	require.NoError(t, l.Close(t.Context()))
	require.Zero(t, l.Stats().Failed, "a value of another type or format is no error")
}

func TestTwoTiersRedisSlow(t *testing.T) {
	t.Parallel()
	var l *twoTiers
	load().Exercise(t, func(t *testing.T) ledgertest.Ledger {
		l, _ = openTiers(t, func(t *testing.T, c *cold.Ledger) memory {
			addr, raw := startRedis(t)
			return memory{openHot(t, c, delay(t, addr, 600*time.Millisecond), 50*time.Millisecond), raw}
		})
		return l
	})
	require.Positive(t, l.Stats().Failed)
}

func TestColdAlone(t *testing.T) {
	t.Parallel()
	load().Exercise(t, func(t *testing.T) ledgertest.Ledger {
		l, _ := openTiers(t, func(*testing.T, *cold.Ledger) memory { return memory{} })
		return l
	})
}

// PostgreSQL loses a row whose fact lives: the next copy is NEW, as it says, and
// Redis's word is counted as a witness, in the process and in dedup_meta.
func TestWitnessOfARowPostgresForgot(t *testing.T) {
	t.Parallel()
	l, m := openTiers(t, healthy)
	key := ledger.PositionKey{Partition: ledger.Partition{Topic: ledger.TopicID{1}}, Topic: "raw-ingest.as2", Group: "dedup"}
	claim := ledger.NewClaim()
	_, err := l.OpenPosition(t.Context(), key, claim, ledger.Position{}, nil)
	require.NoError(t, err)
	register := func(offset int64) ledger.Result {
		r := ledger.Registration{
			Origin:        ledger.Origin{Gate: ledger.GateKafka, Topic: key.Partition.Topic, Offset: offset},
			Account:       "tenant1:as2",
			Keys:          []ledger.Key{{Scope: "tenant1:as2", Key: "hdr:1", Window: time.Hour}},
			PayloadSHA256: [32]byte{1}, HashMode: ledger.HashRaw,
		}
		local := time.Now()
		a, err := l.Register(t.Context(), &ledger.Chunk{
			Gate: ledger.GateKafka, Registrations: []ledger.Registration{r},
			Advances: []ledger.Advance{{
				Partition: key.Partition, Claim: claim, Seq: offset,
				D: ledger.Position{Offset: offset}, NewD: ledger.Position{Offset: offset + 1},
			}},
		})
		require.NoError(t, err)
		l.Confirm(ledger.FactsOf([]ledger.Registration{r}, a.Results), ledger.Clock{Postgres: a.Now, Local: local})
		return a.Results[0]
	}
	require.True(t, register(0).Inserted)
	require.Eventually(t, func() bool {
		_, known, err := m.hot.Get(t.Context(), "tenant1:as2", "hdr:1")
		return err == nil && known
	}, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, int64(1), register(1).Repeat)
	_, err = l.pool.Exec(t.Context(), "delete from dedup_ledger")
	require.NoError(t, err)

	again := register(2)
	require.True(t, again.Inserted, "PostgreSQL decides")
	require.Equal(t, int64(2), again.Entry.Origin.Offset)
	require.NoError(t, l.Close(t.Context()))
	require.Equal(t, map[ledger.Gate]int64{ledger.GateKafka: 1}, l.Stats().Witnesses)
	var kept int64
	require.NoError(t, l.pool.QueryRow(t.Context(), "select witness_kafka from dedup_meta").Scan(&kept))
	require.Equal(t, int64(1), kept)
	f, known, err := m.hot.Get(t.Context(), "tenant1:as2", "hdr:1")
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, int64(2), f.Origin.Offset, "the fact is the present row's")
}

// trusting is the two-tier ledger with law 4 broken: a live fact in Redis is the
// answer, and PostgreSQL is asked about the rest.
type trusting struct {
	*twoTiers
	hot *hot.Hot
}

func (l *trusting) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.twoTiers.Register(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range c.Registrations {
		if len(c.Registrations[i].Keys) == 0 || a.Results[i].Refused != "" {
			continue
		}
		f, known, err := l.hot.Get(ctx, c.Registrations[i].Keys[0].Scope, c.Registrations[i].Keys[0].Key)
		if err == nil && known && !f.Closed && f.Origin != c.Registrations[i].Origin {
			e := &a.Results[i].Entry
			e.Origin, e.PayloadSHA256, e.FirstSeenAt, e.ExpiresAt = f.Origin, f.PayloadSHA256, f.FirstSeenAt, f.ExpiresAt
			a.Results[i].Inserted = false
		}
	}
	return a, nil
}

// Negative control of law 4 on real services: with facts trusted, a Redis that
// holds facts of old rows, or other rows' facts, makes wrong verdicts, and the
// same suite says so.
// Fault card: F02.
func TestNegativeControlFactTrusted(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func() mischief{
		"stale": stale,
		"lying": func() mischief { return lie },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m := openTiers(t, healthy)
			disturb(t, m.raw, kind())
			small := ledgertest.DefaultLoad()
			small.Sequential, small.Racing = 20_000, 4_000
			_, err := small.Check(t.Context(), &trusting{l, m.hot})
			require.Error(t, err)
			require.True(t, strings.Contains(err.Error(), "by the reference") || strings.Contains(err.Error(), "is not live"), err)
		})
	}
}

// seenFlag is the two-tier ledger with the origin replaced by a flag.
type seenFlag struct{ *twoTiers }

func (l seenFlag) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.twoTiers.Register(ctx, c)
	if err == nil {
		for i := range a.Results {
			if !a.Results[i].Inserted && a.Results[i].Entry.Key != "" {
				a.Results[i].Entry.Origin = ledger.Origin{Gate: ledger.GateKafka}
			}
		}
	}
	return a, err
}

// Fault card: F16.
func TestNegativeControlSeenFlag(t *testing.T) {
	t.Parallel()
	l, _ := openTiers(t, func(*testing.T, *cold.Ledger) memory { return memory{} })
	small := ledgertest.DefaultLoad()
	small.Sequential, small.Racing = 5_000, 0
	_, err := small.Check(t.Context(), seenFlag{l})
	require.ErrorContains(t, err, "by the reference")
}
