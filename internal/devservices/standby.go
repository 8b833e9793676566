package devservices

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// StartReplicable starts a PostgreSQL server that StartStandby can copy. Both are
// native in any case: a standby reads the other's log over loopback.
func (s *Services) StartReplicable(ctx context.Context, settings ...string) (*Postgres, error) {
	return s.addPostgres(func(folder, binaries string) (*Postgres, error) {
		return startPostgres(ctx, folder, binaries, append(replication(), settings...))
	})
}

// StartStandby copies a running server (pg_basebackup) and starts the copy as its
// standby, which streams under the name: the one that SetSynchronous takes. After
// the primary's end Promote makes it a primary, with the SetSynchronous of the
// other at the time of the copy; what was the primary comes back as a new standby
// of it only.
func (s *Services) StartStandby(ctx context.Context, primary *Postgres, name string, settings ...string) (*Postgres, error) {
	return s.addPostgres(func(folder, binaries string) (*Postgres, error) {
		host, port, err := net.SplitHostPort(primary.Addr())
		if err != nil {
			return nil, fmt.Errorf("reading the primary's address: %w", err)
		}
		from := fmt.Sprintf("host=%s port=%s user=postgres application_name=%s sslmode=disable", host, port, name)
		ours := append(replication(), "primary_conninfo="+from)
		p, err := newPostgres(folder, binaries, append(ours, settings...))
		if err != nil {
			return nil, err
		}
		if err := p.copyFrom(ctx, binaries, from); err != nil {
			return p, err
		}
		return p, p.launch(ctx, 1)
	})
}

// replication lets a standby that was away for a while go on, and come back at
// once.
func replication() []string {
	return []string{"wal_keep_size=1GB", "wal_retrieve_retry_interval=100ms", "wal_receiver_status_interval=1s"}
}

func (s *Services) addPostgres(start func(folder, binaries string) (*Postgres, error)) (*Postgres, error) {
	folder, err := s.folder("postgres")
	if err != nil {
		return nil, err
	}
	binaries, err := postgresBinaries()
	if err != nil {
		return nil, unavailable("postgres", err)
	}
	p, err := start(folder, binaries)
	if p != nil {
		s.onClose(p.Close)
	}
	return p, err
}

// copyFrom fills the data folder with a copy of a running server, and marks it as
// a standby.
func (p *Postgres) copyFrom(ctx context.Context, binaries, from string) error {
	if err := p.makeFolder(); err != nil {
		return err
	}
	c := p.command(filepath.Join(binaries, "pg_basebackup"), "--pgdata="+p.data, "--dbname="+from,
		"--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync")
	if err := runToEnd(ctx, c); err != nil {
		return fmt.Errorf("copying a PostgreSQL server: %w", err)
	}
	return nil
}

// SetSynchronous lets each commit wait for the named standbys, all of them; for
// none with no name. It returns when the server goes by it. While one is named and
// not attached, commits wait.
func (p *Postgres) SetSynchronous(ctx context.Context, names ...string) (err error) {
	c, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	want := ""
	if len(names) > 0 {
		want = fmt.Sprintf("%d (%s)", len(names), strings.Join(names, ", "))
	}
	for _, sql := range []string{
		"alter system set synchronous_standby_names = '" + want + "'",
		"select pg_reload_conf()",
	} {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("setting synchronous standbys: %w", err)
		}
	}
	return p.until(ctx, c, "select current_setting('synchronous_standby_names') = $1", want)
}

// AwaitSynchronous waits until so many standbys are attached that commits wait
// for.
func (p *Postgres) AwaitSynchronous(ctx context.Context, n int) error {
	c, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	return p.until(ctx, c, "select count(*) = $1 from pg_stat_replication where sync_state in ('sync', 'quorum') and state = 'streaming'", n)
}

// until asks until the answer is true.
func (p *Postgres) until(ctx context.Context, c *pgx.Conn, sql string, args ...any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errors.New("PostgreSQL does not come to: "+sql))
	defer cancel()
	return poll(ctx, func() (yes bool, err error) {
		if err := c.QueryRow(ctx, sql, args...).Scan(&yes); err != nil {
			return false, fmt.Errorf("asking PostgreSQL: %w", err)
		}
		return yes, nil
	})
}
