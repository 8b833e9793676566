package devservices

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Postgres is a PostgreSQL server of our own: loopback only, everybody there
// is trusted, superuser postgres.
type Postgres struct {
	Server
	data string
	user *account

	recontain func(ctx context.Context) (unit, error) // of one in a container: another container
}

// postgresSettings are those the ledger was measured with,
// apart from the memory, which is for tests.
func postgresSettings() []string {
	return []string{
		"max_connections=300",
		"shared_buffers=256MB",
		"fsync=on",
		"synchronous_commit=on",
		"max_wal_size=8GB",
		"wal_compression=off",
		"checkpoint_timeout=30min",
		"jit=off",
		"max_parallel_workers_per_gather=0",
	}
}

// startPostgres makes a cluster with the given binaries and starts it.
// Settings ("name=value") are added to ours and win over them.
func startPostgres(ctx context.Context, folder, binaries string, settings []string) (*Postgres, error) {
	p, err := newPostgres(folder, binaries, settings)
	if err != nil {
		return nil, err
	}
	if err := p.initialise(ctx, binaries); err != nil {
		return p, err
	}
	return p, p.launch(ctx, 1)
}

// newPostgres is a server that has no data yet.
func newPostgres(folder, binaries string, settings []string) (*Postgres, error) {
	user, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	p := &Postgres{Server: Server{name: "postgres", folder: folder, dispose: syscall.SIGQUIT}, user: user}
	p.data = filepath.Join(folder, "data")
	p.arrange = func(ports []int) (unit, error) {
		args := []string{
			"-D", p.data, "-c", "port=" + strconv.Itoa(ports[0]),
			"-c", "listen_addresses=" + loopback, "-c", "unix_socket_directories=",
		}
		for _, s := range append(postgresSettings(), settings...) {
			args = append(args, "-c", s)
		}
		return p.command(filepath.Join(binaries, "postgres"), args...), nil
	}
	p.ready = func(ctx context.Context) error {
		_, err := postgresVersion(ctx, p.URL())
		return err
	}
	return p, nil
}

// makeFolder makes the data folder, empty and the server's own.
func (p *Postgres) makeFolder() error {
	if err := os.Chmod(p.folder, 0o755); err != nil {
		return fmt.Errorf("opening PostgreSQL's folder to its user: %w", err)
	}
	if err := os.Mkdir(p.data, 0o700); err != nil {
		return fmt.Errorf("making PostgreSQL's data folder: %w", err)
	}
	if err := p.user.own(p.data); err != nil {
		return fmt.Errorf("giving PostgreSQL's data folder to its user: %w", err)
	}
	return nil
}

func (p *Postgres) initialise(ctx context.Context, binaries string) error {
	if err := p.makeFolder(); err != nil {
		return err
	}
	c := p.command(filepath.Join(binaries, "initdb"), "-D", p.data, "-U", "postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if err := runToEnd(ctx, c); err != nil {
		return fmt.Errorf("making a PostgreSQL cluster: %w", err)
	}
	return nil
}

// command runs in the data folder: the server's user may not be allowed into
// ours, and initdb fails where it cannot look up.
func (p *Postgres) command(path string, args ...string) command {
	return command{
		path: path, args: args, dir: p.data, user: p.user,
		log: filepath.Join(p.folder, "postgres.log"),
		// An immediate shutdown, not SIGKILL: it removes the shared memory.
		orphaned: syscall.SIGQUIT,
		asked:    syscall.SIGINT, // fast shutdown: clients are cut off
	}
}

// URL connects as superuser to the database postgres.
func (p *Postgres) URL() string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: p.Addr(), Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

// CreateDatabase is Services.CreateDatabase on this server.
func (p *Postgres) CreateDatabase(ctx context.Context, name string) (*Database, error) {
	return createDatabase(ctx, p.URL(), name)
}

// CopyData copies the data folder as it is at one instant, as a storage
// snapshot would, and returns the copy's name. The server, if it runs, is
// frozen meanwhile and keeps its connections.
func (p *Postgres) CopyData() (copied string, err error) {
	if err := p.Pause(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Continue()) }()
	if p.box != nil {
		return p.copyContained()
	}
	copied, err = os.MkdirTemp(p.folder, "copy-")
	if err != nil {
		return "", fmt.Errorf("making a folder for a copy of PostgreSQL's data: %w", err)
	}
	return copied, copyTree(copied, p.data)
}

// RestoreData puts the server back to a copy: it is ended, its data replaced
// and the server started again, with everything since the copy forgotten.
func (p *Postgres) RestoreData(ctx context.Context, copied string) error {
	if p.box != nil {
		return p.restoreContained(ctx, copied)
	}
	if err := p.discard(); err != nil {
		return err
	}
	if err := os.RemoveAll(p.data); err != nil {
		return fmt.Errorf("removing PostgreSQL's data: %w", err)
	}
	if err := copyTree(p.data, copied); err != nil {
		return err
	}
	// Left by the copied server, whose process it names: a server that ran.
	if err := os.Remove(filepath.Join(p.data, "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clearing the copy's lock: %w", err)
	}
	if err := p.user.own(p.data); err != nil {
		return fmt.Errorf("giving PostgreSQL's data folder to its user: %w", err)
	}
	return p.Start(ctx)
}

// standbySignal in the data folder makes a standby of the server that starts
// there.
const standbySignal = "standby.signal"

// Demote starts the server again as a standby without a primary: it answers, and
// takes no writes until Promote.
func (p *Postgres) Demote(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	if p.box != nil {
		if err := p.demoteContained(ctx); err != nil {
			return err
		}
		return p.Start(ctx)
	}
	if err := os.WriteFile(filepath.Join(p.data, standbySignal), nil, 0o600); err != nil {
		return fmt.Errorf("making PostgreSQL a standby: %w", err)
	}
	if err := p.user.own(p.data); err != nil {
		return fmt.Errorf("giving PostgreSQL's data folder to its user: %w", err)
	}
	return p.Start(ctx)
}

// Promote makes a standby the primary.
func (p *Postgres) Promote(ctx context.Context) error {
	c, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return fmt.Errorf("connecting to a standby: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if _, err := c.Exec(ctx, "select pg_promote()"); err != nil {
		return fmt.Errorf("promoting PostgreSQL: %w", err)
	}
	return nil
}

// copyTree copies a data folder; PostgreSQL wants it closed to others.
func copyTree(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copying PostgreSQL's data: %w", err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		return fmt.Errorf("closing the copy of PostgreSQL's data: %w", err)
	}
	return nil
}

// postgresBinaries finds a folder that holds postgres and initdb. Names on PATH
// are followed to the real files; a wrapper script that stands alone, without
// an initdb beside it, is passed over.
func postgresBinaries() (string, error) {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if followed, err := filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(followed))
		}
	}
	versioned, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("looking for PostgreSQL: %w", err)
	}
	sort.Slice(versioned, func(i, j int) bool { return majorOf(versioned[i]) > majorOf(versioned[j]) })
	for _, f := range append(folders, versioned...) {
		if executable(filepath.Join(f, "postgres")) && executable(filepath.Join(f, "initdb")) {
			return f, nil
		}
	}
	return "", absent("no folder with postgres and initdb, on PATH or in /usr/lib/postgresql/*/bin")
}

func majorOf(bin string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return n
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// postgresVersion asks the server, which proves that it answers.
func postgresVersion(ctx context.Context, dsn string) (string, error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	var v string
	if err := c.QueryRow(ctx, "select split_part(current_setting('server_version'), ' ', 1)").Scan(&v); err != nil {
		return "", fmt.Errorf("asking PostgreSQL for its version: %w", err)
	}
	return v, nil
}
