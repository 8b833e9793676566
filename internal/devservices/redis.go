package devservices

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Redis is a Redis server of our own, without persistence: what it held is
// gone when it ends.
type Redis struct{ Server }

// startRedis adds more to the command line.
func startRedis(ctx context.Context, folder string, more ...string) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, absent("redis-server is not on PATH")
	}
	r := &Redis{Server{name: "redis", folder: folder, dispose: syscall.SIGKILL}}
	r.arrange = func(ports []int) (unit, error) {
		return command{
			path: path,
			args: append([]string{
				"--port", strconv.Itoa(ports[0]), "--bind", loopback, "--dir", folder,
				"--save", "", "--appendonly", "no", "--daemonize", "no",
			}, more...),
			dir: folder, log: filepath.Join(folder, "redis.log"),
			orphaned: syscall.SIGKILL, asked: syscall.SIGTERM,
		}, nil
	}
	r.ready = func(ctx context.Context) error {
		_, err := redisVersion(ctx, r.Addr())
		return err
	}
	return r, r.launch(ctx, 1)
}

// PeerAddr is host:port where another server reaches this one: that of clients,
// but between containers, whose loopback is their own.
func (r *Redis) PeerAddr(ctx context.Context) (string, error) {
	if r.box == nil {
		return r.Addr(), nil
	}
	host, err := r.box.c.Address(ctx)
	return net.JoinHostPort(host, strconv.Itoa(redisPort)), err //nolint:wrapcheck // says what was tried
}

// answers is asked first: the client logs a refused connection to a logger that
// is the process's, and while a server starts it is no news.
func answers(ctx context.Context, addr string) error {
	probe, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("connecting to Redis: %w", err)
	}
	_ = probe.Close()
	return nil
}

// redisVersion asks the server, which proves that it answers.
func redisVersion(ctx context.Context, addr string) (string, error) {
	if err := answers(ctx, addr); err != nil {
		return "", err
	}
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
	defer c.Close()
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("asking Redis at %s for its version: %w", addr, err)
	}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "redis_version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("redis at %s names no version", addr)
}
