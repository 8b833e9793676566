package devservices

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestEmbedded(t *testing.T) {
	ctx := t.Context()
	t.Setenv(EnvPostgres, "")
	e, err := StartEmbedded(ctx, Options{})
	require.NoError(t, err)
	closed := false
	t.Cleanup(func() {
		if !closed {
			require.NoError(t, e.Close())
		}
	})
	require.Equal(t, FromMachine, e.PostgresFrom)

	k, err := kgo.NewClient(kgo.SeedBrokers(e.KafkaAddr))
	require.NoError(t, err)
	defer k.Close()
	_, err = kadm.NewClient(k).CreateTopic(ctx, 3, 1, nil, "raw-ingest.demo")
	require.NoError(t, err)

	c := redis.NewClient(&redis.Options{Addr: e.RedisAddr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	require.NoError(t, c.Set(ctx, "a", "1", 0).Err())
	e.EmptyRedis()
	require.ErrorIs(t, c.Get(ctx, "a").Err(), redis.Nil)
	e.StopRedis()
	require.Error(t, c.Ping(ctx).Err())
	require.NoError(t, e.StartRedis())
	require.NoError(t, c.Ping(ctx).Err())

	require.Equal(t, RoleOwner, ask(t, e.Database.OwnerURL, "select current_user::text"))
	closed = true
	require.NoError(t, e.Close())
	require.NoDirExists(t, e.temp)
	kids, err := children(os.Getpid())
	require.NoError(t, err)
	require.Empty(t, kids)
}

func TestEmbeddedInAGivenServer(t *testing.T) {
	ctx := t.Context()
	s := &Services{temp: folder(t)}
	p, err := s.StartPostgres(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	t.Setenv(EnvPostgres, p.URL())
	e, err := StartEmbedded(ctx, Options{})
	require.NoError(t, err)
	require.Equal(t, FromEnvironment, e.PostgresFrom)
	require.NoError(t, e.Close())
	require.Equal(t, "0", ask(t, p.URL(), "select count(*)::text from pg_database where datname like 'dedup_demo_%'"))
}

// TestLibraryBinaries fetches PostgreSQL by the embedded-postgres library the
// first time on a machine, and starts what it unpacked.
func TestLibraryBinaries(t *testing.T) {
	t.Parallel()
	temp := folder(t)
	bin, err := libraryBinaries(t.Context(), temp, Options{})
	require.NoError(t, err)
	data := filepath.Join(temp, "postgres")
	require.NoError(t, os.Mkdir(data, 0o700))
	p, err := startPostgres(t.Context(), data, bin, nil)
	require.NoError(t, err)
	require.Equal(t, "postgres", ask(t, p.URL(), "select current_user::text"))
	require.NoError(t, p.Close())
}
