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

	kafka, redis, postgres endpoint
	opts                   Options
	temp                   string

	mu      sync.Mutex
	closers []func() error
}

// New is a set that holds nothing yet, for servers started one by one.
func New(o Options) (*Services, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	temp, err := temporary(o.Temp)
	if err != nil {
		return nil, err
	}
	return &Services{opts: o, temp: temp}, nil
}

// Start finds or starts one set of services. Close ends those it started. The
// error of a service that cannot be had is an *UnavailableError.
func Start(ctx context.Context, o Options) (*Services, error) {
	s, err := New(o)
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
	return []string{
		EnvKafka + "=" + s.kafka.address,
		EnvRedis + "=" + s.redis.address,
		EnvPostgres + "=" + s.postgres.address,
		EnvLine + "=" + s.Describe(),
	}
}

// StartPostgres starts a further PostgreSQL server, for a test that stops,
// kills, freezes or restores it. Settings ("name=value") are added to the usual
// ones. It is native whatever the set's own server is.
func (s *Services) StartPostgres(ctx context.Context, settings ...string) (*Postgres, error) {
	binaries, err := postgresBinaries()
	if err != nil {
		return nil, unavailable("postgres", err)
	}
	folder, err := s.folder("postgres")
	if err != nil {
		return nil, err
	}
	p, err := startPostgres(ctx, folder, binaries, settings)
	if p != nil {
		s.onClose(p.Close)
	}
	return p, err
}

// StartRedis starts a further Redis server.
func (s *Services) StartRedis(ctx context.Context) (*Redis, error) {
	folder, err := s.folder("redis")
	if err != nil {
		return nil, err
	}
	r, err := startRedis(ctx, folder)
	if r != nil {
		s.onClose(r.Close)
	}
	return r, unavailable("redis", err)
}

// StartKafka starts a further Kafka broker.
func (s *Services) StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	libs, err := kafkaLibs(s.opts.Root)
	if err != nil {
		return nil, unavailable("kafka", err)
	}
	folder, err := s.folder("kafka")
	if err != nil {
		return nil, err
	}
	k, err := startKafka(ctx, folder, libs, o)
	if k != nil {
		s.onClose(k.Close)
	}
	return k, unavailable("kafka", err)
}

func (s *Services) folder(name string) (string, error) {
	dir, err := os.MkdirTemp(s.temp, name+"-")
	if err != nil {
		return "", fmt.Errorf("making a folder for %s: %w", name, err)
	}
	return dir, nil
}
