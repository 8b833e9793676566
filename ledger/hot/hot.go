package hot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	defaultTimeout = 50 * time.Millisecond
	// perFact is added to a batch's timeout for each fact: a batch of 2000 on a
	// busy machine takes Redis longer than one GET, and nobody waits for it.
	perFact      = 250 * time.Microsecond
	dialTimeout  = time.Second
	ioTimeout    = 5 * time.Second // the outer bound; each call's own deadline is shorter
	poolSize     = 16
	connLifetime = 30 * time.Minute
)

// Config says where Redis is and how it is used (the redis block of the
// configuration).
type Config struct {
	Addrs      []string // host:port; one is a single server, several are a Cluster
	MasterName string   // set: Addrs are Sentinels
	Username   string   // ACL user, or ""
	// Password is asked whenever a connection is made, so it may be rotated; nil:
	// none.
	Password func() (string, error)
	// Dial makes a connection, with TLS where that is wanted; nil: without.
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	Prefix   string        // of every key; holds no braces
	LedgerID string        // follows the prefix
	TTLCap   time.Duration // longest life of a fact; 0: to the window's end
	Timeout  time.Duration // of one look-up; 0 means 50 ms
	Circuit  Circuit
	// Explain gives an error of a connection a sentence with the repair, or "";
	// nil: there is none.
	Explain func(error) string
	Log     *slog.Logger // nil: nothing is logged
}

// Hot is the hot tier. It is safe for concurrent use.
type Hot struct {
	client  redis.UniversalClient
	script  *redis.Script
	base    string // prefix, ledger id and colon
	cap     time.Duration
	timeout time.Duration
	circuit *circuit
	now     func() time.Time
}

// Open makes the client. It connects with the first call, so Redis may be down.
func Open(cfg Config) (*Hot, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Hot{
		client:  redis.NewUniversalClient(options(cfg)),
		script:  newRememberScript(),
		base:    cfg.Prefix + cfg.LedgerID + ":",
		cap:     cfg.TTLCap,
		timeout: cfg.Timeout,
		circuit: &circuit{cfg: cfg.Circuit, now: time.Now, log: cfg.Log, explain: cfg.Explain, grant: Grant(cfg.Username, cfg.Prefix, len(cfg.Addrs) > 1 && cfg.MasterName == "")},
		now:     time.Now,
	}, nil
}

// Close ends the client and its connections.
func (h *Hot) Close() error {
	if err := h.client.Close(); err != nil {
		return fmt.Errorf("close the Redis client: %w", err)
	}
	return nil
}

// CircuitOpen reports whether Redis is taken for down (dedup_hot_circuit_open).
func (h *Hot) CircuitOpen() bool { return h.circuit.isOpen() }

// Trouble says in a few words why Redis is left alone, or that it did not take
// the last call, or none yet; "" while it answers.
func (h *Hot) Trouble() string { return h.circuit.trouble() }

func (c Config) validate() error {
	var errs []error
	if len(c.Addrs) == 0 {
		errs = append(errs, errors.New("hot: no Redis address"))
	}
	if c.LedgerID == "" {
		errs = append(errs, errors.New("hot: no ledger id"))
	}
	// A {…} would send every key of the ledger to one slot of a Cluster.
	if strings.ContainsAny(c.Prefix+c.LedgerID, "{}") {
		errs = append(errs, fmt.Errorf("hot: prefix %q or ledger id %q holds a brace", c.Prefix, c.LedgerID))
	}
	if c.TTLCap < 0 || c.Timeout < 0 || c.Circuit.Errors < 0 || c.Circuit.Open < 0 {
		errs = append(errs, errors.New("hot: ttl cap, timeout and circuit settings are not negative"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Circuit.Errors == 0 {
		c.Circuit.Errors = 5
	}
	if c.Circuit.Open == 0 {
		c.Circuit.Open = 2 * time.Second
	}
	if c.Explain == nil {
		c.Explain = func(error) string { return "" }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func options(cfg Config) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:                      cfg.Addrs,
		MasterName:                 cfg.MasterName,
		CredentialsProviderContext: cfg.credentials,
		Dialer:                     cfg.Dial,
		// A retry inside the client would multiply the timeout; the next batch
		// is the retry.
		MaxRetries:    -1,
		DialTimeout:   dialTimeout,
		DialerRetries: 1,
		ReadTimeout:   ioTimeout,
		WriteTimeout:  ioTimeout,
		// Each call brings its own deadline.
		ContextTimeoutEnabled: true,
		PoolSize:              poolSize,
		PipelinePoolSize:      -1, // no second pool
		PoolTimeout:           cfg.Timeout,
		// A name that moved to another server is looked up again in time.
		ConnMaxLifetime:          connLifetime,
		ConnMaxLifetimeJitter:    connLifetime / 10,
		Protocol:                 2, // nothing here needs push messages
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func (c Config) credentials(context.Context) (user, password string, err error) {
	if c.Password == nil {
		return c.Username, "", nil
	}
	if password, err = c.Password(); err != nil {
		return "", "", fmt.Errorf("read the Redis password: %w", err)
	}
	return c.Username, password, nil
}
