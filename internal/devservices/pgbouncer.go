package devservices

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// PgBouncer is a pooler of our own in front of a PostgreSQL that trusts whoever
// comes from loopback.
type PgBouncer struct {
	Server
	behind url.URL // of the server
}

// PgBouncerOptions are those that decide what a client can rely on.
type PgBouncerOptions struct {
	PoolMode string   // session, transaction, statement
	PoolSize int      // server connections per user and database
	Settings []string // further lines of the file, "name = value"
}

// StartPgBouncer starts a pooler in front of the PostgreSQL that postgresURL
// leads to. The roles' settings must be those that start-up parameters would
// give: PgBouncer is told to ignore what it does not know.
func (s *Services) StartPgBouncer(ctx context.Context, postgresURL string, o PgBouncerOptions) (*PgBouncer, error) {
	path, err := pgBouncerBinary()
	if err != nil {
		return nil, unavailable("pgbouncer", err)
	}
	behind, err := url.Parse(postgresURL)
	if err != nil || behind.Host == "" {
		return nil, errors.New("starting PgBouncer: PostgreSQL's address is not a postgres:// URL")
	}
	folder, err := s.folder("pgbouncer")
	if err != nil {
		return nil, err
	}
	b, err := startPgBouncer(ctx, path, folder, *behind, o)
	if b != nil {
		s.onClose(b.Close)
	}
	return b, err
}

func pgBouncerBinary() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	const debian = "/usr/sbin/pgbouncer" // not on every PATH
	if executable(debian) {
		return debian, nil
	}
	return "", absent("pgbouncer is neither on PATH nor in /usr/sbin")
}

func startPgBouncer(ctx context.Context, path, folder string, behind url.URL, o PgBouncerOptions) (*PgBouncer, error) {
	user, err := postgresAccount() // it refuses to run as root, too
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, fmt.Errorf("opening PgBouncer's folder to its user: %w", err)
	}
	b := &PgBouncer{Server: Server{name: "pgbouncer", folder: folder, dispose: syscall.SIGKILL}, behind: behind}
	users := "\"" + strings.Join([]string{RoleOwner, RoleApp, RoleRead, "postgres"}, "\" \"\"\n\"") + "\" \"\"\n"
	if err := os.WriteFile(filepath.Join(folder, "users.txt"), []byte(users), 0o644); err != nil {
		return nil, fmt.Errorf("writing PgBouncer's users: %w", err)
	}
	ini := filepath.Join(folder, "pgbouncer.ini")
	b.arrange = func(ports []int) (unit, error) {
		if err := os.WriteFile(ini, []byte(b.file(ports[0], o)), 0o644); err != nil {
			return command{}, fmt.Errorf("writing PgBouncer's settings: %w", err)
		}
		return command{
			path: path, args: []string{ini}, dir: folder, user: user, log: filepath.Join(folder, "pgbouncer.log"),
			orphaned: syscall.SIGKILL, asked: syscall.SIGINT, // as soon as no server is in use
		}, nil
	}
	b.ready = func(ctx context.Context) error {
		_, err := postgresVersion(ctx, b.URL(behind.String())+"&default_query_exec_mode=simple_protocol")
		return err
	}
	return b, b.launch(ctx, 1)
}

// file is pgbouncer.ini. Who comes is trusted, as by the server behind.
func (b *PgBouncer) file(port int, o PgBouncerOptions) string {
	lines := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s", b.behind.Hostname(), b.behind.Port()),
		"[pgbouncer]",
		"listen_addr = " + loopback,
		fmt.Sprintf("listen_port = %d", port),
		"unix_socket_dir =",
		"auth_type = trust",
		"auth_file = " + filepath.Join(b.folder, "users.txt"),
		"pool_mode = " + o.PoolMode,
		fmt.Sprintf("default_pool_size = %d", o.PoolSize),
		"ignore_startup_parameters = default_transaction_isolation,synchronous_commit,lock_timeout,statement_timeout,search_path,jit,extra_float_digits",
	}
	return strings.Join(append(lines, o.Settings...), "\n") + "\n"
}

// URL leads to the same database and user as the URL of the server behind, by
// way of the pooler.
func (b *PgBouncer) URL(direct string) string {
	u, err := url.Parse(direct)
	if err != nil {
		return direct
	}
	u.Host = b.Addr()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}
