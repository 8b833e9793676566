package devservices

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"dedupledger/internal/devservices/pki"
)

// RedisSecurity says how a secure Redis is set up.
type RedisSecurity struct {
	Certificate pki.Pair
	// ClientCA (PEM) signs client certificates; set: who has none is refused.
	ClientCA []byte
	Users    []RedisUser
}

// RedisUser is an ACL user; Rules as `ACL SETUSER` takes them, without the
// password: "~dedup:* +set +get".
type RedisUser struct{ Name, Password, Rules string }

// SecureRedis is a Redis server with TLS on SecureAddr. Addr is a plain port for
// the administrator; the user default needs his password on both.
type SecureRedis struct {
	Server
	adminPassword string
	files         tlsFiles
}

// SecureAddr is host:port of the TLS listener.
func (r *SecureRedis) SecureAddr() string { return address(r.ports[1]) }

func startSecureRedis(ctx context.Context, folder string, o RedisSecurity) (*SecureRedis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, absent("redis-server is not on PATH")
	}
	r := &SecureRedis{Server: Server{name: "redis", folder: folder, dispose: syscall.SIGKILL}, adminPassword: uuid.NewString()}
	if r.files, err = writeTLS(filepath.Join(folder, "tls"), nil, o.Certificate, o.ClientCA); err != nil {
		return nil, err
	}
	r.arrange = func(ports []int) (unit, error) {
		args := []string{
			"--port", strconv.Itoa(ports[0]), "--tls-port", strconv.Itoa(ports[1]), "--bind", loopback, "--dir", folder,
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--requirepass", r.adminPassword,
			"--tls-cert-file", r.files.cert, "--tls-key-file", r.files.key,
		}
		if r.files.clientCA != "" {
			args = append(args, "--tls-auth-clients", "yes", "--tls-ca-cert-file", r.files.clientCA)
		} else {
			// Redis wants an authority although it asks nobody for a certificate.
			args = append(args, "--tls-auth-clients", "no", "--tls-ca-cert-file", r.files.cert)
		}
		for _, u := range o.Users {
			args = append(args, "--user", u.Name)
			args = append(args, u.rules()...)
		}
		return command{
			path: path, args: args, dir: folder, log: filepath.Join(folder, "redis.log"),
			orphaned: syscall.SIGKILL, asked: syscall.SIGTERM,
		}, nil
	}
	r.ready = func(ctx context.Context) error {
		return r.asAdmin(ctx, "asking for an answer", func(c *redis.Client) error { return c.Ping(ctx).Err() })
	}
	return r, r.launch(ctx, 2)
}

func (u RedisUser) rules() []string {
	return append([]string{"reset", "on", ">" + u.Password}, strings.Fields(u.Rules)...)
}

// AdminOptions connect the administrator, without TLS.
func (r *SecureRedis) AdminOptions() *redis.Options {
	return &redis.Options{
		Addr: r.Addr(), Password: r.adminPassword,
		MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
	}
}

func (r *SecureRedis) asAdmin(ctx context.Context, what string, do func(*redis.Client) error) error {
	if err := answers(ctx, r.Addr()); err != nil {
		return err
	}
	c := redis.NewClient(r.AdminOptions())
	defer c.Close()
	if err := do(c); err != nil {
		return fmt.Errorf("redis: %s: %w", what, err)
	}
	return nil
}

// SetUser makes an ACL user or changes one; connections that are open stay so.
func (r *SecureRedis) SetUser(ctx context.Context, u RedisUser) error {
	args := []any{"acl", "setuser", u.Name}
	for _, rule := range u.rules() {
		args = append(args, rule)
	}
	return r.asAdmin(ctx, "setting user "+u.Name, func(c *redis.Client) error { return c.Do(ctx, args...).Err() })
}

// Disconnect cuts off the connections of a user.
func (r *SecureRedis) Disconnect(ctx context.Context, user string) error {
	return r.asAdmin(ctx, "cutting off "+user, func(c *redis.Client) error {
		return c.Do(ctx, "client", "kill", "user", user).Err()
	})
}

// SetCertificate gives the server another certificate; connections that are
// open keep the old one.
func (r *SecureRedis) SetCertificate(ctx context.Context, pair pki.Pair) error {
	if _, _, err := pair.Write(filepath.Dir(r.files.cert), "server"); err != nil {
		return fmt.Errorf("for Redis: %w", err)
	}
	return r.asAdmin(ctx, "loading another certificate", func(c *redis.Client) error {
		return c.Do(ctx, "config", "set", "tls-cert-file", r.files.cert, "tls-key-file", r.files.key).Err()
	})
}
