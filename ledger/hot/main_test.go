package hot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/docker"
	"dedupledger/ledger"
)

func TestMain(m *testing.M) {
	RouteLibraryLog(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const ledgerID = "0190a3c4"

func open(t *testing.T, addr string, change func(*Config)) *Hot {
	t.Helper()
	cfg := Config{
		Addrs: []string{addr}, Prefix: "dedup:", LedgerID: ledgerID,
		// Shared machines stall for longer than the 50 ms of production; tests
		// of timeouts set their own.
		Timeout: 2 * time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	h, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// realRedis is a server of this test alone, so that it may be stopped, filled
// and emptied.
func realRedis(t *testing.T) *devservices.Redis {
	t.Helper()
	s, err := devservices.New(t.Context(), devservices.Options{Connect: docker.Connect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r, err := s.StartRedis(t.Context())
	require.NoError(t, err)
	return r
}

func rawClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, Protocol: 2})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// clock is one registration's: Postgres is nine minutes behind the local clock,
// so that a mix-up of both shows.
func clock() ledger.Clock {
	local := time.Now()
	return ledger.Clock{Postgres: local.Add(-9 * time.Minute).UTC().Truncate(time.Microsecond), Local: local}
}

func kafkaOrigin(offset int64) ledger.Origin {
	return ledger.Origin{Gate: ledger.GateKafka, Topic: ledger.TopicID{1, 2, 3, 15: 9}, Partition: 3, Epoch: 7, Offset: offset}
}

// fact is a live row made at now by offset, for an hour.
func fact(now ledger.Clock, key string, offset int64) ledger.Fact {
	return ledger.Fact{
		Scope: "tenant42:as4", Key: key,
		Origin:        kafkaOrigin(offset),
		PayloadSHA256: sha256.Sum256(fmt.Append(nil, key, offset)),
		HashMode:      ledger.HashRaw,
		FirstSeenAt:   now.Postgres,
		ExpiresAt:     now.Postgres.Add(time.Hour),
		Inserted:      true,
	}
}

// stored is what Get answers for f.
func stored(f ledger.Fact) ledger.Fact {
	f.Origin = Short(f.Origin)
	f.Inserted = false
	if f.HashMode != ledger.HashRaw {
		f.HashMode = ModeCanonical
	}
	return f
}

func requireStored(t *testing.T, h *Hot, want ledger.Fact) {
	t.Helper()
	got, ok, err := h.Get(t.Context(), want.Scope, want.Key)
	require.NoError(t, err)
	require.True(t, ok, "no fact of %s", want.Key)
	require.Equal(t, stored(want), got)
}

func requireAbsent(t *testing.T, h *Hot, f ledger.Fact) {
	t.Helper()
	_, ok, err := h.Get(t.Context(), f.Scope, f.Key)
	require.NoError(t, err)
	require.False(t, ok, "there is a fact of %s", f.Key)
}

func remember(t *testing.T, h *Hot, now ledger.Clock, facts ...ledger.Fact) []ledger.Witness {
	t.Helper()
	w, err := h.Remember(t.Context(), now, facts)
	require.NoError(t, err)
	return w
}

// lines is a slog handler that keeps level and message.
type lines struct {
	slog.Handler
	mu  sync.Mutex
	got []string
}

func logTo(l *lines) *slog.Logger {
	l.Handler = slog.DiscardHandler
	return slog.New(l)
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, r.Level.String()+" "+r.Message)
	return nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.got...)
}
