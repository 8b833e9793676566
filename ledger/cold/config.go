package cold

import (
	"log/slog"
	"time"
)

// Config says where the ledger is and how long to wait for it. Zero values take
// the defaults named with each field.
type Config struct {
	// URL is postgres://user@host:port/database; never logged. Its files
	// (sslrootcert, sslcert, sslkey) are read again for every connection.
	URL string
	// Password is asked for every connection, so a rotated one needs no restart;
	// nil: the URL's own.
	Password func() (string, error)
	// Files says what is wrong with the URL's files, by name: the driver does not
	// tell them apart. nil: the driver says it.
	Files func() error

	MaxConns         int32         // 12
	Lifetime         time.Duration // of a connection; 30 m
	ConnectTimeout   time.Duration // 5 s
	TCPUserTimeout   time.Duration // unacknowledged data ends a connection; 5 s; Linux only
	LockTimeout      time.Duration // for a scope; retried; 5 s
	StatementTimeout time.Duration // 15 s

	// NoStatementCache is for PgBouncer in transaction mode, where a prepared
	// statement may be asked for on a connection that never saw it. PgBouncer
	// must be told to pass or ignore our start-up parameters; where it ignores
	// them, give the role the same settings (ALTER ROLE ... SET): a wrong
	// isolation level is refused, the others are not noticed.
	NoStatementCache bool

	// RequireSyncStandby refuses to open a ledger whose commits wait for no standby.
	RequireSyncStandby bool

	ApplicationName string // "dedup"
	KeepPerKey      int    // repeats kept one by one, later ones are only counted; 100
	Logger          *slog.Logger
}

func (c Config) withDefaults() Config {
	set(&c.MaxConns, 12)
	set(&c.Lifetime, 30*time.Minute)
	set(&c.ConnectTimeout, 5*time.Second)
	set(&c.TCPUserTimeout, 5*time.Second)
	set(&c.LockTimeout, 5*time.Second)
	set(&c.StatementTimeout, 15*time.Second)
	set(&c.KeepPerKey, 100)
	if c.ApplicationName == "" {
		c.ApplicationName = "dedup"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func set[T int | int32 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
