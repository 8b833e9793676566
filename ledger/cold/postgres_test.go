package cold_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/ledger/cold"
	"dedupledger/migrations"
)

// server is the superuser's URL of the PostgreSQL of this run.
var server string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	stop, err := startServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// startServer finds a PostgreSQL: the environment's, else the machine's own
// binaries in a temporary folder.
func startServer() (stop func(), err error) {
	if server = os.Getenv("DEDUP_TEST_POSTGRES"); server != "" {
		return func() {}, makeRoles()
	}
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "dedup-cold-")
	if err != nil {
		return nil, err
	}
	stop = func() { _ = os.RemoveAll(dir) }
	process, err := launch(bin, dir)
	if err != nil {
		stop()
		return nil, err
	}
	stop = func() {
		_ = process.Process.Signal(syscall.SIGINT) // fast shutdown
		_ = process.Wait()
		_ = os.RemoveAll(dir)
	}
	if err := awaitServer(); err != nil {
		stop()
		return nil, err
	}
	return stop, makeRoles()
}

func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("these tests need a PostgreSQL: set DEDUP_TEST_POSTGRES to a superuser's URL, or install its binaries (initdb on PATH or in /usr/lib/postgresql)")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func launch(bin, dir string) (*exec.Cmd, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	if os.Getuid() == 0 { // PostgreSQL refuses root
		id, err := unprivileged()
		if err != nil {
			return nil, err
		}
		attr.Credential = id
		if err := os.Chown(dir, int(id.Uid), int(id.Gid)); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	server = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", port)
	process := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+dir,
		"-c", "fsync=off", "-c", "max_connections=300", "-c", "shared_buffers=128MB", "-c", "max_wal_size=4GB",
		// A zone with daylight saving, and an unlucky default level: ours must not matter.
		"-c", "timezone=America/St_Johns", "-c", "deadlock_timeout=200ms")
	process.SysProcAttr, process.Dir = attr, dir
	return process, process.Start()
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses root, and there is no user postgres or nobody")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func awaitServer() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, server)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL did not start: %w", err)
		case <-tick.C:
		}
	}
}

// makeRoles makes what a deployment makes before it migrates.
func makeRoles() error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("connecting to DEDUP_TEST_POSTGRES: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `
		do $$ declare v text; begin
			perform pg_advisory_xact_lock(4711);
			foreach v in array array['dedup_owner', 'dedup_app', 'dedup_read'] loop
				if to_regrole(v) is null then execute format('create role %I login password %L', v, 'dedup'); end if;
			end loop;
		end $$`)
	return err
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
	ctx := context.Background()
	b := &bundle{TB: t, name: fmt.Sprintf("dedup_cold_%d_%d", os.Getpid(), databases.Add(1))}
	conn, err := pgx.Connect(ctx, server)
	require.NoError(t, err)
	for _, sql := range []string{
		"create database " + b.name + " owner dedup_owner",
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
	if role != "" {
		u.User = url.UserPassword(role, "dedup")
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
