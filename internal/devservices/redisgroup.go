package devservices

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartRedisWith starts a native Redis server with arguments of its command line
// added, such as "--replicaof", "127.0.0.1 6379".
func (s *Services) StartRedisWith(ctx context.Context, args ...string) (*Redis, error) {
	folder, err := s.folder("redis")
	if err != nil {
		return nil, err
	}
	r, err := startRedis(ctx, folder, args...)
	if r != nil {
		s.onClose(r.Close)
	}
	return r, unavailable("redis", err)
}

// StartSentinel starts a Redis Sentinel that watches the primary at host:port
// under the name, and takes it for down after so long.
func (s *Services) StartSentinel(ctx context.Context, name, primary string, down time.Duration) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, unavailable("redis", absent("redis-server is not on PATH"))
	}
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return nil, fmt.Errorf("reading the primary's address: %w", err)
	}
	folder, err := s.folder("sentinel")
	if err != nil {
		return nil, err
	}
	r := &Redis{Server{name: "sentinel", folder: folder, dispose: syscall.SIGKILL}}
	s.onClose(r.Close)
	r.arrange = func(ports []int) (unit, error) {
		file := filepath.Join(folder, "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind %s\ndir %s\nsentinel monitor %s %s %s 1\n", ports[0], loopback, folder, name, host, port) +
			fmt.Sprintf("sentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s 5000\n", name, down.Milliseconds(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("configuring Sentinel: %w", err)
		}
		return command{
			path: path, args: []string{file, "--sentinel"}, dir: folder, log: filepath.Join(folder, "sentinel.log"),
			orphaned: syscall.SIGKILL, asked: syscall.SIGTERM,
		}, nil
	}
	r.ready = func(ctx context.Context) error { return answers(ctx, r.Addr()) }
	return r, r.launch(ctx, 1)
}

// slots of a Redis Cluster.
const slots = 16384

func clusterComplete(info string, nodes int) bool {
	return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", nodes)) &&
		strings.Contains(info, fmt.Sprintf("cluster_size:%d", nodes))
}

// StartRedisCluster starts so many primaries of a Redis Cluster, without
// replicas, and returns when all slots are served.
func (s *Services) StartRedisCluster(ctx context.Context, n int) ([]*Redis, error) {
	var all []*Redis
	var clients []*redis.Client
	var first int // port of the first's bus
	for i := range n {
		// Without it the bus takes the port 10,000 above, whoever has that.
		bus, err := FreePort()
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = bus
		}
		r, err := s.StartRedisWith(ctx, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", strconv.Itoa(bus))
		if err != nil {
			return nil, err
		}
		c := redis.NewClient(&redis.Options{Addr: r.Addr(), DisableIdentity: true})
		defer c.Close()
		if err := c.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err(); err != nil {
			return nil, fmt.Errorf("giving slots to a Redis: %w", err)
		}
		if i > 0 {
			if err := c.Do(ctx, "cluster", "meet", loopback, all[0].ports[0], first).Err(); err != nil {
				return nil, fmt.Errorf("joining Redis servers: %w", err)
			}
		}
		all, clients = append(all, r), append(clients, c)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("the Redis Cluster was not complete within %s", readyWithin))
	defer cancel()
	return all, poll(ctx, func() (bool, error) {
		for _, c := range clients {
			info, err := c.ClusterInfo(ctx).Result()
			if err != nil || !clusterComplete(info, n) {
				return false, nil //nolint:nilerr // asked again
			}
		}
		return true, nil
	})
}
