package cold_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
	"dedupledger/migrations"
)

// waitBlocked returns when one of the application's statements waits for a lock.
func (b *bundle) waitBlocked() {
	b.Helper()
	require.Eventually(b, func() bool {
		return b.one(`select count(*) > 0 from pg_stat_activity where datname = current_database() and usename = 'dedup_app' and wait_event_type = 'Lock'`) == "true"
	}, 20*time.Second, 5*time.Millisecond)
}

// lines are what a logger wrote.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// A scope held for longer than lock_timeout is asked for again.
func TestALockTimeoutIsRetried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tried := make(lines, 100)
	b.l = b.open(cold.Config{
		LockTimeout: 200 * time.Millisecond,
		Logger:      slog.New(slog.NewTextHandler(tried, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"})

	tx := b.held(`select from dedup_scope for update`)
	done := make(chan error, 1)
	c := s.chunk(rec{offset: 1, key: "k2", payload: "a"})
	go func() { _, err := b.l.Register(t.Context(), c); done <- err }()
	b.waitBlocked()
	<-tried
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-done)
	require.Equal(t, "2", b.one(`select seq from dedup_position`), "counted once")
}

func TestALockThatIsNeverReleasedIsUnavailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.l = b.open(cold.Config{LockTimeout: 20 * time.Millisecond})
	s := b.session(1, 0)
	tx := b.held(`lock table dedup_scope in access exclusive mode`)
	_, err := b.l.Register(t.Context(), s.chunk(rec{offset: 0, key: "k", payload: "a"}))
	require.ErrorIs(t, err, ledger.ErrUnavailable)
	require.NoError(t, tx.Rollback(t.Context()))
}

// A stop arrives while the chunk waits inside PostgreSQL: it is not cancelled,
// and its answer is taken.
// Fault card: F04.
func TestARegistrationUnderWayIsNotCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	tx := b.held(`select from dedup_scope for update`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	c := s.chunk(rec{offset: 1, key: "k2", payload: "a"})
	go func() { _, err := b.l.Register(ctx, c); done <- err }()
	b.waitBlocked()
	cancel()
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-done)
	_, err := b.l.Register(ctx, c)
	require.ErrorIs(t, err, ledger.ErrUnavailable, "but nothing new is begun")
}

// The connection dies under a chunk: unknown, and the retry meets itself.
func TestALostAnswerIsHarmless(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	tx := b.held(`select from dedup_scope for update`)
	records := []rec{{offset: 1, key: "k2", payload: "a"}, {offset: 2, key: "k2", payload: "a"}}
	done := make(chan error, 1)
	c := s.chunk(records...)
	go func() { _, err := b.l.Register(t.Context(), c); done <- err }()
	b.waitBlocked()
	b.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = 'dedup_app'`)
	require.ErrorIs(t, <-done, ledger.ErrUnavailable)
	require.NoError(t, tx.Rollback(t.Context()))

	// The same terms, as if the answer alone had been lost: twice.
	for range 2 {
		again := s.take()
		require.Equal(t, []string{"NEW", "SEEN"}, again.run(records...))
	}
	require.Equal(t, "t1:as2 NEW 2, t1:as2 SEEN 1", b.hours())
}

// A primary becomes a standby and then another server is the primary: the pool
// comes back without a restart.
// Fault card: F03.
func TestAConnectionThatCannotWriteIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	b.l = b.open(cold.Config{MaxConns: 1})
	b.exec(`alter database ` + b.name + ` set default_transaction_read_only = on`)
	b.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = 'dedup_app'`)
	_ = b.l.Ping(t.Context()) // its connection is gone; the next one cannot write
	c := s.chunk(rec{offset: 0, key: "k", payload: "a"})
	_, err := b.l.Register(t.Context(), c)
	require.ErrorIs(t, err, ledger.ErrUnavailable)
	b.exec(`alter database ` + b.name + ` reset default_transaction_read_only`)
	_, err = b.l.Register(t.Context(), c)
	require.NoError(t, err)
}

func TestOpenTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := setupEmpty(t)
	open := func(c cold.Config) error {
		l, err := cold.Open(t.Context(), c)
		if err == nil {
			l.Close()
		}
		return err
	}
	err := open(cold.Config{URL: b.url("dedup_app")})
	require.ErrorIs(t, err, ledger.ErrSchema)
	require.ErrorContains(t, err, "dedup migrate up")

	require.NoError(t, migrations.Up(t.Context(), b.url("dedup_owner"), migrations.Options{}))
	require.NoError(t, open(cold.Config{URL: b.url("dedup_app")}))
	err = open(cold.Config{URL: b.url("dedup_read")})
	require.ErrorIs(t, err, ledger.ErrSchema)
	require.ErrorContains(t, err, "dedup_app")

	err = open(cold.Config{URL: "postgres://dedup_app:geheim@127.0.0.1:1/x", ConnectTimeout: time.Second})
	require.ErrorIs(t, err, ledger.ErrUnavailable)
	require.NotContains(t, err.Error(), "geheim")
	err = open(cold.Config{URL: "postgres://dedup_app:geheim@[x/x"})
	require.ErrorContains(t, err, "postgres://user@host:port/database")
	require.NotContains(t, err.Error(), "geheim")
	require.ErrorIs(t, open(cold.Config{URL: b.url("nobody_of_that_name")}), ledger.ErrSchema)
}

func TestThePasswordFileIsReadForEachConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := filepath.Join(t.TempDir(), "password")
	require.ErrorContains(t, func() error {
		_, err := cold.Open(t.Context(), cold.Config{URL: b.url("dedup_app"), Password: fromFile(file)})
		return err
	}(), "postgres.password_file")
	require.NoError(t, os.WriteFile(file, []byte("dedup\n"), 0o600))
	require.NoError(t, b.open(cold.Config{Password: fromFile(file)}).Ping(t.Context()))
}

func fromFile(file string) func() (string, error) {
	return func() (string, error) {
		text, err := os.ReadFile(file)
		return strings.TrimSpace(string(text)), err
	}
}

// Fault card: F06.
func TestMaintain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	days := make(chan int)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.l.Maintain(ctx, 6, time.Millisecond, func(d int) {
			select {
			case days <- d:
			case <-ctx.Done():
			}
		})
	}()
	require.Greater(t, <-days, 6*30-2)
	require.Greater(t, <-days, 6*30-2)
	cancel()
	<-done
}
