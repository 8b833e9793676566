package migrations_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/internal/devservices"
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

// database is an empty one, owned by dedup_owner.
func database(t *testing.T) (url func(role string) string) {
	t.Helper()
	name := fmt.Sprintf("dedup_migrations_%d_%d", os.Getpid(), databases.Add(1))
	admin := connect(t, server)
	_, err := admin.Exec(t.Context(), "create database "+name+" owner dedup_owner template template0")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := connect(t, server).Exec(context.WithoutCancel(t.Context()), "drop database "+name+" with (force)")
		require.NoError(t, err)
	})
	return func(role string) string { return as(t, name, role) }
}

func as(t *testing.T, name, role string) string {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	u.Path = "/" + name
	if password, set := u.User.Password(); set && role != "" {
		u.User = url.UserPassword(role, password)
	} else if role != "" {
		u.User = url.User(role)
	}
	return u.String()
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also for the clean-up
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

// Fault card: F06.
func TestUpSeveralAtOnce(t *testing.T) {
	t.Parallel()
	db := database(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	conn := connect(t, db("dedup_app"))
	require.NoError(t, migrations.Check(t.Context(), conn))
	var months, ledgers int
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from pg_inherits where inhparent = 'dedup_ledger'::regclass").Scan(&months))
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from dedup_meta").Scan(&ledgers))
	require.Equal(t, []int{4, 1}, []int{months, ledgers}, "this month and three ahead; one ledger id")
}

func TestCheckNamesTheCommand(t *testing.T) {
	t.Parallel()
	db := database(t)
	conn := connect(t, db("dedup_owner"))
	requireVersion := func(have int64, says string) {
		t.Helper()
		var version *migrations.VersionError
		require.ErrorAs(t, migrations.Check(t.Context(), conn), &version)
		require.Equal(t, have, version.Have)
		require.Contains(t, version.Error(), says)
	}
	requireVersion(0, "dedup migrate up")
	require.NoError(t, migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}))
	require.NoError(t, migrations.Check(t.Context(), conn))

	newest := migrations.Version()
	_, err := conn.Exec(t.Context(), "insert into dedup_migration (version_id, is_applied) values ($1, true)", newest+1)
	require.NoError(t, err)
	require.NoError(t, migrations.Check(t.Context(), conn), "the next release's schema: programs are replaced one by one")
	_, err = conn.Exec(t.Context(), "update dedup_meta set runs_from = $1", newest+1)
	require.NoError(t, err)
	requireVersion(newest+1, "install the newer program")
	_, err = conn.Exec(t.Context(), "delete from dedup_migration where version_id >= $1", newest)
	require.NoError(t, err)
	all, err := migrations.Sources()
	require.NoError(t, err)
	requireVersion(all[len(all)-2].Version, "dedup migrate up")
}

func TestUpAsAnotherRoleNamesTheOwner(t *testing.T) {
	t.Parallel()
	db := database(t)
	require.ErrorContains(t, migrations.Up(t.Context(), db("dedup_app"), migrations.Options{}), "connect as the schema's owner")
}

func TestStatusAndPlanChangeNothing(t *testing.T) {
	t.Parallel()
	db := database(t)
	plan := planned(t, db("dedup_owner"))
	require.Contains(t, plan, "create table dedup_ledger")
	require.Contains(t, plan, "grant")

	states, err := migrations.Status(t.Context(), db("dedup_owner"))
	require.NoError(t, err)
	all, err := migrations.Sources()
	require.NoError(t, err)
	require.Len(t, states, len(all))
	for _, s := range states {
		require.False(t, s.Applied, s.Name)
	}
	require.NoError(t, migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}))
	states, err = migrations.Status(t.Context(), db("dedup_app"))
	require.NoError(t, err)
	for _, s := range states {
		require.True(t, s.Applied, s.Name)
	}
	require.NotContains(t, planned(t, db("dedup_app")), "create table")
}

// planned is the plan as a user reads it.
func planned(t *testing.T, url string) string {
	t.Helper()
	plan, err := migrations.Plan(t.Context(), url)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, migrations.WritePlan(&text, plan))
	return text.String()
}

// The plan is what runs: given to another program, it makes the same schema.
func TestThePlanIsWhatRuns(t *testing.T) {
	t.Parallel()
	byHand, migrated := database(t), database(t)
	text, _, _ := strings.Cut(planned(t, byHand("dedup_owner")), "-- after every run")
	_, err := connect(t, byHand("dedup_owner")).Exec(t.Context(), text)
	require.NoError(t, err)
	require.NoError(t, migrations.Up(t.Context(), migrated("dedup_owner"), migrations.Options{}))
	const schema = `select string_agg(x, e'\n' order by x) from (
		select format('%s.%s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull) x from pg_attribute
		where attnum > 0 and attrelid::regclass::text ~ '^dedup_' and attrelid::regclass::text !~ '^dedup_migration'
		union all select md5(prosrc) || proname from pg_proc where proname ~ '^dedup_') y`
	var a, b string
	require.NoError(t, connect(t, byHand("dedup_owner")).QueryRow(t.Context(), schema).Scan(&a))
	require.NoError(t, connect(t, migrated("dedup_owner")).QueryRow(t.Context(), schema).Scan(&b))
	require.Equal(t, b, a)
}

func TestRights(t *testing.T) {
	t.Parallel()
	db := database(t)
	require.NoError(t, migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}))
	app, read := connect(t, db("dedup_app")), connect(t, db("dedup_read"))
	for _, sql := range []string{
		"insert into dedup_action (actor, kind, reason) values ('me', 'reopen', 'test')",
		"update dedup_meta set fingerprint = 'x'",
		"select dedup_months_1(4)",
		"select * from dedup_ledger_v",
	} {
		_, err := app.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	for _, sql := range []string{
		"update dedup_action set reason = 'other'", "delete from dedup_action", "truncate dedup_action",
		"update dedup_meta set ledger_id = gen_random_uuid()",
		"delete from dedup_ledger", "drop table dedup_gap", "create table x (y integer)",
	} {
		requireDenied(t, app, sql)
	}
	_, err := read.Exec(t.Context(), "select * from dedup_ledger_v, dedup_action, dedup_hour, dedup_sighting")
	require.NoError(t, err)
	requireDenied(t, read, "update dedup_meta set fingerprint = 'x'")
	requireDenied(t, read, "select dedup_months_1(4)")
}

func requireDenied(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused, sql)
	require.Equal(t, "42501", refused.Code, sql)
}

// A month is one of UTC, and named so, in any zone.
func TestMonthsAreUTC(t *testing.T) {
	t.Parallel()
	db := database(t)
	require.NoError(t, migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}))
	conn := connect(t, db("dedup_owner"))
	_, err := conn.Exec(t.Context(), "set timezone = 'Pacific/Kiritimati'")
	require.NoError(t, err)
	// The last second of December in UTC is January there.
	_, err = conn.Exec(t.Context(), "select dedup_month_1('2019-12-31 23:59:59+00')")
	require.NoError(t, err)
	var bound string
	_, err = conn.Exec(t.Context(), "set timezone = 'UTC'")
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), "select pg_get_expr(relpartbound, oid) from pg_class where relname = 'dedup_ledger_2019_12'").Scan(&bound))
	require.Equal(t, "FOR VALUES FROM ('2019-12-01 00:00:00+00') TO ('2020-01-01 00:00:00+00')", bound)
}

// A month is made while a registration holds its locks on the ledger.
// Fault card: F06.
func TestMonthsPassRegistrations(t *testing.T) {
	t.Parallel()
	db := database(t)
	require.NoError(t, migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}))
	writer := connect(t, db("dedup_app"))
	tx, err := writer.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "update dedup_ledger set retry_count = 0; select from dedup_sighting")
	require.NoError(t, err)
	maker := connect(t, db("dedup_app"))
	_, err = maker.Exec(t.Context(), "set lock_timeout = '1s'")
	require.NoError(t, err)
	_, err = maker.Exec(t.Context(), "select dedup_months_1(6)")
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
}

func TestALockedTableIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := database(t)
	require.NoError(t, migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}))
	owner := connect(t, db("dedup_owner"))
	tx, err := owner.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "lock table dedup_migration in access exclusive mode")
	require.NoError(t, err)
	short := migrations.Options{LockTimeout: 100 * time.Millisecond}
	err = migrations.Up(t.Context(), db("dedup_owner"), short)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "55P03", refused.Code)

	done := make(chan error, 1)
	short.Retries = 100
	go func() { done <- migrations.Up(t.Context(), db("dedup_owner"), short) }()
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-done)
}

func TestAPasswordNeverShows(t *testing.T) {
	t.Parallel()
	err := migrations.Up(t.Context(), "postgres://u:geheim@[broken/db", migrations.Options{})
	require.ErrorContains(t, err, "postgres://user@host:port/database")
	require.NotContains(t, err.Error(), "geheim")
}
