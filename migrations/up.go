package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Options of Up. The zero value is the default.
type Options struct {
	// LockTimeout is how long a statement waits for a table's lock: short, or
	// all the filter's work queues up behind a migration that waits. Default 2 s.
	LockTimeout time.Duration
	// Retries is how often a migration that met the LockTimeout is tried again.
	Retries int
	// Logger gets one line per applied migration; nil discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.LockTimeout <= 0 {
		o.LockTimeout = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

const (
	lockNotAvailable      = "55P03" // SQLSTATE: the end of a lock_timeout
	insufficientPrivilege = "42501" // SQLSTATE
)

// Up applies what is missing, each migration in its own transaction, then
// grants rights and makes months ahead. Safe from several processes at once.
// url is a PostgreSQL connection string of the schema's owner.
func Up(ctx context.Context, url string, o Options) error {
	o = o.withDefaults()
	db, err := open(url, o.LockTimeout)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for attempt := 0; ; attempt++ {
		err = up(ctx, db, o)
		var refused *pgconn.PgError
		if err == nil || attempt >= o.Retries || !errors.As(err, &refused) || refused.Code != lockNotAvailable {
			return err
		}
		o.Logger.InfoContext(ctx, "a table is locked; the migration is tried again", "attempt", attempt+1, "of", o.Retries)
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(o.LockTimeout):
		}
	}
}

func up(ctx context.Context, db *sql.DB, o Options) error {
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	applied, err := provider.Up(ctx)
	for _, r := range applied {
		o.Logger.InfoContext(ctx, "migration applied", "version", r.Source.Version, "took", r.Duration.Round(time.Millisecond).String())
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == insufficientPrivilege {
		return fmt.Errorf("the role may not make the ledger: connect as the schema's owner: %w", err)
	}
	if err != nil {
		return fmt.Errorf("applying migrations: %w", Brief(err))
	}
	if _, err := db.ExecContext(ctx, after); err != nil {
		return fmt.Errorf("granting rights and making months: %w", err)
	}
	return nil
}

// open sets what migrations rely on for each connection. A migration may take
// long (an index on a year), so there is no statement_timeout.
func open(url string, lockTimeout time.Duration) (*sql.DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockTimeout.Milliseconds(), 10)
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["timezone"] = "UTC"
	config.RuntimeParams["search_path"] = "public"
	config.RuntimeParams["default_transaction_isolation"] = "read committed"
	config.RuntimeParams["application_name"] = "dedup-migrate"
	return stdlib.OpenDB(*config), nil
}

// parse never repeats the URL in its error: it may hold a password.
func parse(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the PostgreSQL URL cannot be read: postgres://user@host:port/database is expected")
	}
	config.DialFunc = AskTLS(config.DialFunc)
	return config, nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	// An advisory lock of the database: who comes second waits up to 5 minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, fmt.Errorf("making the migration lock: %w", err)
	}
	sub, err := sqlFiles()
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, sub,
		goose.WithSessionLocker(locker),
		goose.WithTableName(table),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing the migrations: %w", err)
	}
	return provider, nil
}
