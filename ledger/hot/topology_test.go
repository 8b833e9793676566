package hot

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
	"dedupledger/ledger"
)

func contextCancelled(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func requireWithin(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, 5*time.Millisecond, what)
}

// startRedis starts redis-server with these arguments and waits until it answers.
func startRedis(t *testing.T, args ...string) (addr string) {
	t.Helper()
	port, err := devservices.FreePort()
	require.NoError(t, err)
	args = append(args, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", t.TempDir(), "--save", "", "--daemonize", "no", "--logfile", "redis.log")
	cmd := exec.Command("redis-server", args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_, _ = cmd.Process.Wait()
	})
	addr = "127.0.0.1:" + strconv.Itoa(port)
	raw := rawClient(t, addr)
	requireWithin(t, "redis-server answers", func() bool { return raw.Ping(t.Context()).Err() == nil })
	return addr
}

// Two masters: keys spread over both, and each learns the script on its own.
func TestRealCluster(t *testing.T) {
	t.Parallel()
	nodes := make([]string, 2)
	var bus int // of the last
	for i := range nodes {
		var err error
		// Without this the bus takes the port 10,000 above, whoever has that.
		bus, err = devservices.FreePort()
		require.NoError(t, err)
		nodes[i] = startRedis(t, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-port", strconv.Itoa(bus))
	}
	a, b := rawClient(t, nodes[0]), rawClient(t, nodes[1])
	require.NoError(t, a.ClusterAddSlotsRange(t.Context(), 0, 8191).Err())
	require.NoError(t, b.ClusterAddSlotsRange(t.Context(), 8192, 16383).Err())
	host, port, _ := strings.Cut(nodes[1], ":")
	require.NoError(t, a.Do(t.Context(), "cluster", "meet", host, port, bus).Err())
	for _, c := range []*redis.Client{a, b} {
		requireWithin(t, "the nodes know each other", func() bool {
			info, err := c.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384") &&
				strings.Contains(info, "cluster_known_nodes:2")
		})
	}

	for _, c := range []*redis.Client{a, b} {
		setUser(t, c, "dedup", Rules("dedup:", true)...)
	}
	h := open(t, nodes[0], func(c *Config) { c.Addrs, c.Username, c.Password = nodes, "dedup", password("secret") })
	now := clock()
	facts := make([]ledger.Fact, 200)
	for i := range facts {
		facts[i] = fact(now, fmt.Sprintf("{same}%d", i), int64(i))
	}
	remember(t, h, now, facts...)
	for i := range facts {
		requireStored(t, h, facts[i])
	}
	onA, onB := a.DBSize(t.Context()).Val(), b.DBSize(t.Context()).Val()
	require.Positive(t, onA)
	require.Positive(t, onB)
	require.Equal(t, int64(200), onA+onB)
	stats, err := h.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, "noeviction", stats.Policy)

	require.NoError(t, b.ScriptFlush(t.Context()).Err())
	facts[0].RetryCount = 1
	remember(t, h, now, facts...)
}

// Fault card: F02.
func TestRealSentinel(t *testing.T) {
	t.Parallel()
	host, port, _ := strings.Cut(realRedis(t).Addr(), ":")
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(conf, []byte("sentinel monitor facts "+host+" "+port+" 1\n"), 0o600))
	sentinel := startRedis(t, conf, "--sentinel")
	setUser(t, rawClient(t, net.JoinHostPort(host, port)), "dedup", Rules("dedup:", false)...)
	h := open(t, sentinel, func(c *Config) { c.MasterName, c.Username, c.Password = "facts", "dedup", password("secret") })
	now := clock()
	f := fact(now, "k", 1)
	remember(t, h, now, f)
	requireStored(t, h, f)
	_, err := h.Stats(t.Context())
	require.NoError(t, err)
}
