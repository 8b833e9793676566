package crash

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/docker"
	"dedupledger/ledger/cold"
	"dedupledger/ledger/hot"
	"dedupledger/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what the lanes share: a real PostgreSQL and a real Redis.
type world struct {
	cold  *cold.Ledger
	hot   *hot.Hot
	admin *pgxpool.Pool
	log   *slog.Logger
	table *table

	mu     sync.Mutex
	faults []error
}

// report keeps what went wrong.
func (w *world) report(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, err)
}

func (w *world) wrong() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults
}

// tables are those that PostgreSQL loses commits of.
var tables = []string{"ledger", "sighting", "hour", "position", "gap"}

// poison makes the ledger reject a key as it does data that its tables cannot
// take.
const poison = `
create function crash_poison() returns trigger language plpgsql as $$
begin
	raise exception 'a key that no table takes' using errcode = '22000';
end $$;
create trigger crash_poison before insert on dedup_ledger for each row when (new.key like 'hdr:poison%') execute function crash_poison();
`

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	services, err := devservices.Start(ctx, devservices.Options{Connect: docker.Connect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, services.Close()) })
	db, err := services.CreateDatabase(ctx, fmt.Sprintf("dedup_crash_%d", os.Getpid()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Drop(ctx)) })
	require.NoError(t, migrations.Up(ctx, db.OwnerURL, migrations.Options{}))
	w := &world{table: newTable(), log: slog.New(slog.DiscardHandler)}
	if to := os.Getenv("CRASH_LOG"); to != "" {
		f, err := os.Create(to)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		w.log = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w.admin, err = pgxpool.New(ctx, db.AdminURL)
	require.NoError(t, err)
	t.Cleanup(w.admin.Close)
	_, err = w.admin.Exec(ctx, poison)
	require.NoError(t, err)
	for _, set := range []string{"kept", "later"} { // into which PostgreSQL is put back, and out of it
		for _, table := range tables {
			_, err = w.admin.Exec(ctx, fmt.Sprintf("create table %s_%s as select * from dedup_%s", set, table, table))
			require.NoError(t, err)
		}
	}
	w.cold, err = cold.Open(ctx, cold.Config{URL: db.AppURL, MaxConns: maxLanes, KeepPerKey: 1_000_000})
	require.NoError(t, err)
	t.Cleanup(w.cold.Close)
	w.hot, err = hot.Open(hot.Config{Addrs: []string{services.RedisAddr}, Prefix: "crash:" + uuid.NewString() + ":", LedgerID: w.cold.ID().String(), Timeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.hot.Close()) })
	return w
}
