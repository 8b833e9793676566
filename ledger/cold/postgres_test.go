package cold_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/internal/devservices"
	"dedupledger/ledger/cold"
	"dedupledger/migrations"
)

// server is where each test makes its database: that of an administrator.
var server string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	services, err := devservices.StartEmbedded(context.Background(), devservices.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need a PostgreSQL:", err)
		return 1
	}
	server = services.Database.AdminURL
	code := m.Run()
	if err := errors.Join(services.Close(), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var databases atomic.Int64

// bundle is a database of its own for one test: migrated by the owner, used by
// the application's role.
type bundle struct {
	testing.TB
	name  string
	admin *pgxpool.Pool // superuser
	l     *cold.Ledger  // as dedup_app
}

func setup(t testing.TB) *bundle {
	t.Helper()
	b := setupEmpty(t)
	require.NoError(t, migrations.Up(t.Context(), b.url("dedup_owner"), migrations.Options{}))
	b.l = b.open(cold.Config{})
	return b
}

// setupEmpty has no schema yet, and no ledger.
func setupEmpty(t testing.TB) *bundle {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also for the clean-up
	b := &bundle{TB: t, name: fmt.Sprintf("dedup_cold_%d_%d", os.Getpid(), databases.Add(1))}
	conn, err := pgx.Connect(ctx, server)
	require.NoError(t, err)
	for _, sql := range []string{
		"create database " + b.name + " owner dedup_owner template template0",
		// Half an hour off, and with daylight saving: the zone must not matter.
		"alter database " + b.name + " set timezone = 'America/St_Johns'",
	} {
		_, err = conn.Exec(ctx, sql)
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close(ctx))
	b.admin, err = pgxpool.New(ctx, b.url(""))
	require.NoError(t, err)
	t.Cleanup(func() {
		b.admin.Close()
		conn, err := pgx.Connect(ctx, server)
		require.NoError(t, err)
		_, err = conn.Exec(ctx, "drop database "+b.name+" with (force)")
		require.NoError(t, err)
		require.NoError(t, conn.Close(ctx))
	})
	return b
}

// url is that of the database for a role; "" is the superuser.
func (b *bundle) url(role string) string {
	u, err := url.Parse(server)
	require.NoError(b, err)
	u.Path = "/" + b.name
	if password, set := u.User.Password(); set && role != "" {
		u.User = url.UserPassword(role, password)
	} else if role != "" {
		u.User = url.User(role)
	}
	return u.String()
}

func (b *bundle) open(c cold.Config) *cold.Ledger {
	b.Helper()
	if c.URL == "" {
		c.URL = b.url("dedup_app")
	}
	l, err := cold.Open(b.Context(), c)
	require.NoError(b, err)
	b.Cleanup(l.Close)
	return l
}

func (b *bundle) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.admin.Exec(b.Context(), sql, args...)
	require.NoError(b, err, sql)
}

// one is the only row's only column, as text.
func (b *bundle) one(sql string, args ...any) string {
	b.Helper()
	var s *string
	require.NoError(b, b.admin.QueryRow(b.Context(), "select ("+strings.TrimSuffix(sql, ";")+")::text", args...).Scan(&s), sql)
	if s == nil {
		return "null"
	}
	return *s
}
