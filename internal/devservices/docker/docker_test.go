//go:build docker

// These need an engine: go test -tags docker ./internal/devservices/docker.

package docker

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"dedupledger/internal/devservices"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// own is a set of nothing, whose servers are containers.
func own(t *testing.T) *devservices.Services {
	t.Helper()
	s, err := devservices.New(t.Context(), devservices.Options{Connect: Connect})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// ofRun lists the containers of a run, running or not.
func ofRun(t *testing.T, run string) []string {
	t.Helper()
	e, err := Connect(t.Context())
	require.NoError(t, err)
	engine, ok := e.(*Engine)
	require.True(t, ok)
	defer func() { require.NoError(t, engine.Close()) }()
	list, err := engine.provider.Client().ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", runLabel+"="+run),
	})
	require.NoError(t, err)
	var images []string
	for i := range list.Items {
		images = append(images, list.Items[i].Image)
	}
	return images
}

func variable(environ []string, name string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func TestWholeSet(t *testing.T) {
	for _, v := range []string{devservices.EnvKafka, devservices.EnvRedis, devservices.EnvPostgres, devservices.EnvLine, EnvRun} {
		t.Setenv(v, "")
	}
	t.Setenv(devservices.EnvServices, devservices.ServicesDocker)
	s, err := devservices.Start(t.Context(), devservices.Options{Connect: Connect})
	require.NoError(t, err)
	t.Log(s.Describe())
	require.Regexp(t, `^services: kafka \d+\.\d+\.\d+ docker \S+:\d+ · redis \d+\.\d+\.\d+ docker \S+:\d+ · postgres \d+\.\d+ docker \S+:\d+$`, s.Describe())
	run := variable(s.Environ(), EnvRun)
	require.ElementsMatch(t, []string{devservices.KafkaImage, devservices.RedisImage, devservices.PostgresImage}, ofRun(t, run))

	t.Run("a program below that is killed leaves nothing", func(t *testing.T) {
		t.Setenv(EnvRun, run)
		below := own(t)
		_, err := below.StartRedis(t.Context())
		require.NoError(t, err)
		require.Len(t, ofRun(t, run), 4)
		// It is gone without Close; s is what stands above it.
		require.NoError(t, s.Close())
		require.Empty(t, ofRun(t, run))
	})
}

// TestInterrupted ends the command around a test, as Ctrl-C does.
func TestInterrupted(t *testing.T) {
	for _, v := range []string{devservices.EnvKafka, devservices.EnvRedis, devservices.EnvPostgres, devservices.EnvLine} {
		t.Setenv(v, "127.0.0.1:1") // only a server of its own is wanted
	}
	p, err := own(t).StartPostgres(t.Context())
	require.NoError(t, err)
	r, err := own(t).StartRedis(t.Context())
	require.NoError(t, err)
	t.Setenv(devservices.EnvPostgres, p.URL())
	t.Setenv(devservices.EnvRedis, r.Addr())
	t.Setenv(devservices.EnvKafka, "")
	t.Setenv(devservices.EnvServices, devservices.ServicesDocker)

	program := filepath.Join(t.TempDir(), "with-services")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "dedupledger/internal/devservices/cmd/with-services").CombinedOutput()
	require.NoError(t, err, string(out))
	told := filepath.Join(t.TempDir(), "run")
	// The command tells its run, then its parent to end.
	c := exec.CommandContext(t.Context(), program, "--", "sh", "-c", `echo "$`+EnvRun+`" >"$TOLD"; kill -TERM $PPID; exec sleep 1000`)
	c.Env = append(os.Environ(), "TOLD="+told)
	out, err = c.CombinedOutput()
	require.Error(t, err, string(out))
	run, err := os.ReadFile(told)
	require.NoError(t, err, string(out))
	require.NotEmpty(t, strings.TrimSpace(string(run)))
	require.Empty(t, ofRun(t, strings.TrimSpace(string(run))), string(out))
}

func TestRedisStopsStartsAndFreezes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, err := own(t).StartRedis(ctx)
	require.NoError(t, err)
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Set(ctx, "a", "1", 0).Err())
	require.NoError(t, syscall.Kill(r.PID(), 0), "the engine is of this machine, and so is the process")
	require.NotEmpty(t, r.Log())

	require.NoError(t, r.Pause())
	require.NoError(t, r.Pause(), "twice is once")
	frozen, cancel := context.WithCancel(ctx)
	answered := make(chan error, 1)
	go func() { answered <- c.Get(frozen, "a").Err() }()
	cancel()
	require.Error(t, <-answered)
	require.NoError(t, r.Continue())
	require.Equal(t, "1", c.Get(ctx, "a").Val())

	require.NoError(t, r.Stop(ctx))
	require.Error(t, c.Ping(ctx).Err())
	require.NoError(t, r.Start(ctx))
	require.ErrorIs(t, c.Get(ctx, "a").Err(), redis.Nil, "at the same address")
	require.NoError(t, r.Pause())
	require.NoError(t, r.Kill(), "also a frozen one")
	require.Error(t, c.Ping(ctx).Err())
	require.NoError(t, r.Start(ctx))
	require.NoError(t, c.Ping(ctx).Err())
}

func TestPostgresRestartsAndIsRestored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p, err := own(t).StartPostgres(ctx, "default_transaction_isolation=repeatable read")
	require.NoError(t, err)
	require.Equal(t, "repeatable read", ask(t, p.URL(), "show default_transaction_isolation"))
	require.Equal(t, "8GB", ask(t, p.URL(), "show max_wal_size"))
	require.Equal(t, "1", ask(t, p.URL(), "with t as (select pg_catalog.set_config('a.b', '1', false) as n) select n from t"))
	execute(t, p.URL(), "create table t as select 1 as n")
	addr := p.Addr()

	require.NoError(t, p.Stop(ctx))
	require.NoError(t, p.Start(ctx))
	require.NoError(t, p.Kill())
	require.NoError(t, p.Start(ctx))
	require.Equal(t, "1", ask(t, p.URL(), "select count(*)::text from t"))

	held, err := pgx.Connect(ctx, p.URL())
	require.NoError(t, err)
	copied, err := p.CopyData()
	require.NoError(t, err)
	require.NoError(t, held.Ping(ctx), "a copy leaves connections alone")
	require.NoError(t, held.Close(ctx))
	execute(t, p.URL(), "insert into t values (2)")
	for range 2 {
		require.NoError(t, p.RestoreData(ctx, copied))
		require.Equal(t, "1", ask(t, p.URL(), "select count(*)::text from t"))
		require.Equal(t, addr, p.Addr())
		execute(t, p.URL(), "insert into t values (3)")
	}
	require.NoError(t, p.Demote(ctx))
	require.Equal(t, "true", ask(t, p.URL(), "select pg_is_in_recovery()::text"))
	require.NoError(t, p.Promote(ctx))
	execute(t, p.URL(), "insert into t values (4)")
	d, err := p.CreateDatabase(ctx, "d")
	require.NoError(t, err)
	require.Equal(t, devservices.RoleApp, ask(t, d.AppURL, "select current_user::text"))
}

func TestEndedEarlyShowsItsLog(t *testing.T) {
	t.Parallel()
	_, err := own(t).StartPostgres(t.Context(), "no_such_setting=1")
	require.ErrorContains(t, err, "no_such_setting", "the log's tail is in the error")
}

func TestKafkaRestarts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	k, err := own(t).StartKafka(ctx, devservices.KafkaOptions{})
	require.NoError(t, err)
	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.DefaultProduceTopic("t"))
	require.NoError(t, err)
	defer c.Close()
	_, err = kadm.NewClient(c).CreateTopic(ctx, 1, 1, nil, "t")
	require.NoError(t, err)
	require.NoError(t, c.ProduceSync(ctx, kgo.StringRecord("before")).FirstErr())
	for _, down := range []func() error{func() error { return k.Stop(ctx) }, k.Kill} {
		require.NoError(t, down())
		require.NoError(t, k.Start(ctx))
		require.NoError(t, c.ProduceSync(ctx, kgo.StringRecord("after")).FirstErr())
	}
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, "t")
	require.NoError(t, err)
	end, _ := ends.Lookup("t", 0)
	require.EqualValues(t, 3, end.Offset, "its log is kept")
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

func execute(t *testing.T, url, q string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), q)
	require.NoError(t, err)
}
