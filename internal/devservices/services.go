package devservices

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options say where to look and whom to tell.
type Options struct {
	// Root is the repository root; "" looks upward from the working directory
	// for go.mod.
	Root string
	// Temp is where the temporary folder is made; "" is the system's place.
	Temp string
	// Progress is told what is being waited for; may be nil.
	Progress func(string)
	// Connect reaches a Docker engine; nil: there are no containers. Its error
	// is a *NoEngineError where none answers.
	Connect func(ctx context.Context) (Engine, error)
}

func (o Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

func (o Options) withDefaults() (Options, error) {
	if o.Root != "" {
		return o, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return o, fmt.Errorf("finding the working directory: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			o.Root = d
			return o, nil
		}
		if d == filepath.Dir(d) {
			o.Root = dir
			return o, nil
		}
	}
}

// Services are a set of real Kafka, Redis and PostgreSQL.
type Services struct {
	KafkaBrokers []string // host:port
	RedisAddr    string   // host:port
	PostgresURL  string   // of a role that may create roles and databases
	// KafkaRestricted is host:port of the same Kafka where a client is held to its
	// rights (UserFilter, UserMaker), or "" where it has no such listener.
	KafkaRestricted string

	kafka, redis, postgres endpoint
	opts                   Options
	temp                   string
	engine                 Engine // nil: servers are native
	noEngine               string // why

	mu      sync.Mutex
	closers []func() error
}

// Start finds or starts one set of services. Close ends those it started. The
// error of a service that cannot be had is an *UnavailableError.
func Start(ctx context.Context, o Options) (*Services, error) {
	s, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	var g errgroup.Group
	g.Go(func() error { return s.find(ctx, &s.kafka, "kafka", EnvKafka, s.kafkaWays()) })
	g.Go(func() error { return s.find(ctx, &s.redis, "redis", EnvRedis, s.redisWays()) })
	g.Go(func() error { return s.find(ctx, &s.postgres, "postgres", EnvPostgres, s.postgresWays()) })
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.KafkaBrokers = strings.Split(s.kafka.address, ",")
	s.RedisAddr = s.redis.address
	s.PostgresURL = s.postgres.address
	return s, nil
}

// New is a set that holds nothing yet, for servers started one by one.
func New(ctx context.Context, o Options) (*Services, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Services{opts: o, KafkaRestricted: os.Getenv(EnvRestricted)}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if s.temp, err = temporary(o.Temp); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect decides between containers and native processes.
func (s *Services) connect(ctx context.Context) error {
	choice := os.Getenv(EnvServices)
	switch choice {
	case "", ServicesDocker:
	case ServicesNative:
		s.noEngine = EnvServices + " is " + ServicesNative
		return nil
	default:
		return fmt.Errorf("%s is %q: write %s or %s, or leave it empty for what is there", EnvServices, choice, ServicesDocker, ServicesNative)
	}
	if s.opts.Connect == nil {
		s.noEngine = "this program starts no containers"
	} else if err := s.reach(ctx); err != nil {
		return err
	}
	if choice == ServicesDocker && s.engine == nil {
		return fmt.Errorf("%s is %s, but %s", EnvServices, choice, s.noEngine)
	}
	return nil
}

func (s *Services) reach(ctx context.Context) error {
	engine, err := s.opts.Connect(ctx)
	if none, ok := errors.AsType[*NoEngineError](err); ok {
		s.noEngine = none.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("connecting to Docker: %w", err)
	}
	s.engine = engine
	s.onClose(engine.Close)
	return nil
}

// Close ends what was started, last first, and removes the temporary folder.
func (s *Services) Close() error {
	s.mu.Lock()
	closers := s.closers
	s.closers = nil
	s.mu.Unlock()
	var errs []error
	for _, c := range slices.Backward(closers) {
		errs = append(errs, c())
	}
	return errors.Join(append(errs, os.RemoveAll(s.temp))...)
}

func (s *Services) onClose(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// Describe says in one line which service came from where, in the versions the
// services themselves tell.
func (s *Services) Describe() string {
	line := fmt.Sprintf("services: %s · %s · %s", &s.kafka, &s.redis, &s.postgres)
	handed := os.Getenv(EnvLine)
	for _, e := range []*endpoint{&s.kafka, &s.redis, &s.postgres} {
		if e.source != sourceEnvironment || !strings.Contains(handed, e.shown) {
			return line
		}
	}
	return handed
}

// Environ is the environment, as NAME=value, in which another program finds
// these very services.
func (s *Services) Environ() []string {
	environ := []string{
		EnvKafka + "=" + s.kafka.address,
		EnvRedis + "=" + s.redis.address,
		EnvPostgres + "=" + s.postgres.address,
		EnvRestricted + "=" + s.KafkaRestricted,
		EnvLine + "=" + s.Describe(),
		EnvServices + "=" + s.own(),
	}
	if s.engine != nil {
		environ = append(environ, s.engine.Environ()...)
	}
	return environ
}

// own says where servers of a test's own come from.
func (s *Services) own() string {
	if s.engine != nil {
		return ServicesDocker
	}
	return ServicesNative
}

// StartPostgres starts a further PostgreSQL server, for a test that stops,
// kills, freezes or restores it. Settings ("name=value") are added to the usual
// ones. It is a container where an engine answers, whatever the set's own server
// is; the same holds for Redis and Kafka.
func (s *Services) StartPostgres(ctx context.Context, settings ...string) (*Postgres, error) {
	folder, err := s.folder("postgres")
	if err != nil {
		return nil, err
	}
	p, err := s.startPostgres(ctx, folder, settings)
	if p != nil {
		s.onClose(p.Close)
	}
	return p, unavailable("postgres", err)
}

func (s *Services) startPostgres(ctx context.Context, folder string, settings []string) (*Postgres, error) {
	if s.engine != nil {
		return containPostgres(ctx, s.engine, folder, settings)
	}
	binaries, err := postgresBinaries()
	if err != nil {
		return nil, err
	}
	return startPostgres(ctx, folder, binaries, settings)
}

// StartRedis starts a further Redis server.
func (s *Services) StartRedis(ctx context.Context) (*Redis, error) {
	folder, err := s.folder("redis")
	if err != nil {
		return nil, err
	}
	start := func(ctx context.Context, folder string) (*Redis, error) { return startRedis(ctx, folder) }
	if s.engine != nil {
		start = func(ctx context.Context, folder string) (*Redis, error) { return containRedis(ctx, s.engine, folder) }
	}
	r, err := start(ctx, folder)
	if r != nil {
		s.onClose(r.Close)
	}
	return r, unavailable("redis", err)
}

// StartKafka starts a further Kafka broker.
func (s *Services) StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	folder, err := s.folder("kafka")
	if err != nil {
		return nil, err
	}
	k, err := s.startKafka(ctx, folder, o)
	if k != nil {
		s.onClose(k.Close)
	}
	return k, unavailable("kafka", err)
}

func (s *Services) startKafka(ctx context.Context, folder string, o KafkaOptions) (*Kafka, error) {
	if s.engine != nil && o.secure == nil && !o.Restricted {
		return containKafka(ctx, s.engine, folder, o)
	}
	libs, err := kafkaLibs(s.opts.Root)
	if err != nil {
		return nil, err
	}
	return startKafka(ctx, folder, libs, o)
}

func (s *Services) folder(name string) (string, error) {
	dir, err := os.MkdirTemp(s.temp, name+"-")
	if err != nil {
		return "", fmt.Errorf("making a folder for %s: %w", name, err)
	}
	return dir, nil
}
