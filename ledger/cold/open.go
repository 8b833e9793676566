package cold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dedupledger/ledger"
	"dedupledger/migrations"
)

// Ledger is the cold tier. It is safe for concurrent use.
type Ledger struct {
	pool   *pgxpool.Pool
	config Config
	log    *slog.Logger
	id     uuid.UUID
	name   atomic.Pointer[string] // application_name of new connections
}

// Open connects, checks the schema and reads the ledger's id. A schema of
// another version, a missing right or a refused password is a ledger.ErrSchema;
// a server that does not answer is a ledger.ErrUnavailable.
func Open(ctx context.Context, c Config) (*Ledger, error) {
	c = c.withDefaults()
	config, err := poolConfig(c)
	if err != nil {
		return nil, err
	}
	l := &Ledger{config: c, log: c.Logger.With("component", "ledger")}
	l.name.Store(&c.ApplicationName)
	config.BeforeConnect = l.named(config.BeforeConnect)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("preparing the PostgreSQL pool: %w", err)
	}
	l.pool = pool
	if err := l.Check(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	if err := pool.QueryRow(ctx, "select ledger_id from dedup_meta").Scan(&l.id); err != nil {
		pool.Close()
		return nil, atStart("reading the ledger's id", err)
	}
	return l, nil
}

// Connect makes one connection as those of the filter are, without looking at the
// schema. A refused login is a ledger.ErrSchema.
func Connect(ctx context.Context, c Config) (*pgx.Conn, error) {
	c = c.withDefaults()
	config, err := poolConfig(c)
	if err != nil {
		return nil, err
	}
	if err := c.renew(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, atStart("connecting to PostgreSQL", err)
	}
	return conn, nil
}

// ID is the ledger's own, made by the first migration. It marks Kafka offsets
// and Redis keys as this ledger's.
func (l *Ledger) ID() uuid.UUID { return l.id }

// Rename gives the pool's connections another application_name: those in use are
// replaced when they come back.
func (l *Ledger) Rename(applicationName string) {
	if *l.name.Swap(&applicationName) != applicationName {
		l.pool.Reset()
	}
}

// named puts the present name into each new connection, and then asks before.
func (l *Ledger) named(before func(context.Context, *pgx.ConnConfig) error) func(context.Context, *pgx.ConnConfig) error {
	return func(ctx context.Context, cc *pgx.ConnConfig) error {
		cc.RuntimeParams["application_name"] = *l.name.Load()
		if before == nil {
			return nil
		}
		return before(ctx, cc)
	}
}

// Close waits for what is under way and closes all connections.
func (l *Ledger) Close() { l.pool.Close() }

// Ping asks for any answer at all.
func (l *Ledger) Ping(ctx context.Context) error {
	if err := l.pool.Ping(ctx); err != nil {
		return classify("pinging PostgreSQL", err)
	}
	return nil
}

// Check says whether the schema and our rights on it fit this program:
// ledger.ErrSchema with a sentence that tells what to do, or nil.
func (l *Ledger) Check(ctx context.Context) error {
	err := migrations.Check(ctx, l.pool)
	if version, ok := errors.AsType[*migrations.VersionError](err); ok {
		return fmt.Errorf("%w: %w", ledger.ErrSchema, version)
	}
	if err != nil && sqlstate(err) != codeNotPermitted { // the rights are told in full
		return atStart("checking the schema", err)
	}
	if err := l.checkRights(ctx); err != nil || !l.config.RequireSyncStandby {
		return err
	}
	s, err := askStandby(ctx, l.pool)
	if err != nil {
		return atStart("looking for a synchronous standby", err)
	}
	return s.judge()
}

func poolConfig(c Config) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, c.unreadable(err)
	}
	config.MaxConns = c.MaxConns
	config.MaxConnLifetime = c.Lifetime
	config.MaxConnLifetimeJitter = c.Lifetime / 10
	conn := config.ConnConfig
	conn.ConnectTimeout = c.ConnectTimeout
	conn.DialFunc = migrations.AskTLS(dialer(c).DialContext)
	if c.NoStatementCache {
		conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	maps.Copy(conn.RuntimeParams, runtimeParams(c))
	config.BeforeConnect = c.renew
	return config, nil
}

// renew reads what may have been rotated since the last connection.
func (c Config) renew(_ context.Context, conn *pgx.ConnConfig) error {
	now, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return c.unreadable(err)
	}
	conn.TLSConfig, conn.Fallbacks = now.TLSConfig, now.Fallbacks
	if c.Password == nil {
		return nil
	}
	if conn.Password, err = c.Password(); err != nil {
		return fmt.Errorf("reading postgres.password_file: %w", err)
	}
	return nil
}

// unreadable says why a URL cannot be used: for a file of its own, or as a
// whole. The parser's text may repeat the URL, and that may hold a password.
func (c Config) unreadable(err error) error {
	if c.Files != nil {
		if err := c.Files(); err != nil {
			return fmt.Errorf("reading a file of postgres.url: %w: %w", ledger.ErrUnavailable, err)
		}
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("reading a file of postgres.url: %w: %w", ledger.ErrUnavailable, file)
	}
	return errors.New("the PostgreSQL URL cannot be read: postgres://user@host:port/database is expected")
}

// runtimeParams are sent with every start-up, so that neither the database's
// nor the role's own settings reach us: a default of repeatable read would make
// one key NEW twice, and synchronous_commit=off would lose verdicts in a crash.
func runtimeParams(c Config) map[string]string {
	return map[string]string{
		"application_name":              c.ApplicationName,
		"default_transaction_isolation": "read committed",
		"synchronous_commit":            "on",
		"lock_timeout":                  milliseconds(c.LockTimeout),
		"statement_timeout":             milliseconds(c.StatementTimeout),
		"timezone":                      "UTC",
		"search_path":                   "public",
		"jit":                           "off", // a chunk takes 10 ms; compiling its plan takes longer
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
