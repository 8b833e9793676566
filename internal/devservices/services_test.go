package devservices

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *Services {
	t.Helper()
	s, err := Start(t.Context(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestNative needs the environment to itself: it starts what the environment
// may offer already.
func TestNative(t *testing.T) {
	for _, v := range []string{EnvKafka, EnvRedis, EnvPostgres, EnvLine, EnvServices} {
		t.Setenv(v, "")
	}
	s, err := Start(t.Context(), Options{})
	require.NoError(t, err)
	require.Regexp(t, `^services: kafka \d+\.\d+\.\d+ native 127\.0\.0\.1:\d+ · `+
		`redis \d+\.\d+\.\d+ native 127\.0\.0\.1:\d+ · postgres \d+\.\d+ native 127\.0\.0\.1:\d+$`, s.Describe())
	t.Log(s.Describe())

	for _, kv := range s.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	again := start(t)
	require.Equal(t, s.Describe(), again.Describe(), "a program that was handed the services says where they came from")

	kids, err := children(os.Getpid())
	require.NoError(t, err)
	require.Len(t, kids, 3)
	require.NoError(t, s.Close())
	kids, err = children(os.Getpid())
	require.NoError(t, err)
	require.Empty(t, kids, "a process was left")
	require.NoDirExists(t, s.temp)
}

func TestUnavailableNamesAllWays(t *testing.T) {
	t.Setenv(EnvKafka, "")
	t.Setenv(EnvRedis, "")
	t.Setenv(EnvServices, "")
	t.Setenv(EnvFolder, t.TempDir())
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), Options{})
	require.ErrorContains(t, err, "no ")
	require.ErrorContains(t, err, "DEDUP_TEST_")
	require.ErrorContains(t, err, "make services")
	var u *UnavailableError
	require.ErrorAs(t, err, &u)
}

func TestEnvironmentThatDoesNotAnswerIsAnError(t *testing.T) {
	port, err := FreePort()
	require.NoError(t, err)
	t.Setenv(EnvRedis, address(port))
	t.Setenv(EnvServices, "")
	_, err = Start(t.Context(), Options{})
	require.ErrorContains(t, err, "redis from environment")
}

func TestPostgresRestartsAndIsRestored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := &Services{temp: folder(t)}
	p, err := s.StartPostgres(ctx, "default_transaction_isolation=repeatable read")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	require.Equal(t, "repeatable read", ask(t, p.URL(), "show default_transaction_isolation"))
	require.Equal(t, "on", ask(t, p.URL(), "show fsync"))
	require.Equal(t, "SELECT 1", execute(t, p.URL(), "create table t as select 1 as n"))
	addr := p.Addr()

	require.NoError(t, p.Stop(ctx))
	require.NoError(t, p.Start(ctx))
	require.Equal(t, addr, p.Addr())
	require.NoError(t, p.Kill())
	require.NoError(t, p.Start(ctx), "after a kill it starts at once: no backend of before holds its memory")

	held, err := pgx.Connect(ctx, p.URL())
	require.NoError(t, err)
	copied, err := p.CopyData()
	require.NoError(t, err)
	require.NoError(t, held.Ping(ctx), "a copy leaves connections alone")
	require.NoError(t, held.Close(ctx))
	require.Equal(t, "INSERT 0 1", execute(t, p.URL(), "insert into t values (2)"))
	require.Equal(t, "2", ask(t, p.URL(), "select count(*)::text from t"))
	require.NoError(t, p.RestoreData(ctx, copied))
	require.Equal(t, "1", ask(t, p.URL(), "select count(*)::text from t"))
	require.Equal(t, addr, p.Addr())
}

func TestRedisStopsStartsAndFreezes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := &Services{temp: folder(t)}
	r, err := s.StartRedis(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	require.NoError(t, c.Set(ctx, "a", "1", 0).Err())
	require.NoError(t, r.Pause())
	short, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	require.Error(t, c.Get(short, "a").Err())
	require.NoError(t, r.Continue())
	require.Equal(t, "1", c.Get(ctx, "a").Val())

	require.NoError(t, r.Stop(ctx))
	require.Error(t, c.Ping(ctx).Err())
	require.NoError(t, r.Start(ctx))
	require.ErrorIs(t, c.Get(ctx, "a").Err(), redis.Nil)
	require.NoError(t, r.Kill())
	require.Error(t, c.Ping(ctx).Err())
}

func TestDatabasesAndRoles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := &Services{temp: folder(t)}
	p, err := s.StartPostgres(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	made := make(chan error, 4)
	for _, name := range []string{"a", "b", "c", "d"} {
		go func() {
			_, err := p.CreateDatabase(ctx, name)
			made <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-made)
	}
	d, err := p.CreateDatabase(ctx, "e")
	require.NoError(t, err)
	require.Equal(t, "CREATE TABLE", execute(t, d.OwnerURL, "create table t (n int)"))
	require.Equal(t, RoleApp, ask(t, d.AppURL, "select current_user::text"))
	require.Equal(t, RoleRead, ask(t, d.ReadURL, "select current_user::text"))
	require.NoError(t, d.Drop(ctx))
	require.Equal(t, "0", ask(t, p.URL(), "select count(*)::text from pg_database where datname = 'e'"))
}

// TestLostPort lets a server lose its first port between our release and its
// bind.
func TestLostPort(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, err := startRedis(ctx, folder(t))
	require.NoError(t, err)
	require.NoError(t, r.Kill())
	t.Cleanup(func() { require.NoError(t, r.Close()) })

	usual := r.arrange
	tries := 0
	r.arrange = func(ports []int) (unit, error) {
		tries++
		if tries == 1 {
			ports[0] = taken(t)
		}
		return usual(ports)
	}
	require.NoError(t, r.launch(ctx, 1))
	require.Equal(t, 2, tries)
}

func TestEndedEarlyShowsItsLog(t *testing.T) {
	t.Parallel()
	s := &Services{temp: folder(t)}
	p, err := s.StartPostgres(t.Context(), "no_such_setting=1")
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NotNil(t, p)
	require.ErrorContains(t, err, "no_such_setting", "the log's tail is in the error")
}

func TestPassable(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	require.True(t, passable(dir))
	require.NoError(t, os.Chmod(dir, 0o700))
	require.False(t, passable(dir))
	require.False(t, passable(filepath.Join(dir, "below")))
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := temporary("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func taken(t *testing.T) int {
	t.Helper()
	h, err := holdPort()
	require.NoError(t, err)
	t.Cleanup(h.release)
	return h.l.Addr().(*net.TCPAddr).Port
}

func ask(t *testing.T, url, q string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	var v string
	require.NoError(t, c.QueryRow(t.Context(), q).Scan(&v))
	return v
}

func execute(t *testing.T, url, q string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	tag, err := c.Exec(t.Context(), q)
	require.NoError(t, err)
	return tag.String()
}
