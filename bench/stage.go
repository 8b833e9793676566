package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/devservices"
)

// stage is what all phases share: the services, the filled topic, the program.
type stage struct {
	o        *options
	services *devservices.Services
	create   func(ctx context.Context, name string) (*devservices.Database, error)
	postgres string                // URL of the server's administrator
	server   *devservices.Postgres // it, where it is ours; always in phase outage
	redis    *devservices.Redis    // that phase outage takes away, else nil
	client   *kgo.Client
	admin    *kadm.Client
	dir      string
	binary   string // the filter
	self     string // this program, which is also the copy
	id       string // of this run, in names of topics, groups and databases
	raw      string
	flows    []flow
	secure   *secure // of phase tls, else nil
}

func newStage(ctx context.Context, o *options) (s *stage, err error) {
	s = &stage{o: o, id: uuid.NewString()[:8], flows: flows()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.raw = "raw-ingest." + s.id
	if s.dir, err = os.MkdirTemp("", "dedup-bench-"); err != nil {
		return s, fmt.Errorf("making a folder: %w", err)
	}
	if s.self, err = os.Executable(); err != nil {
		return s, fmt.Errorf("finding this program: %w", err)
	}
	if err := s.build(ctx); err != nil {
		return s, err
	}
	if s.services, err = devservices.Start(ctx, devservices.Options{Progress: func(what string) { say("%s", what) }}); err != nil {
		return s, err //nolint:wrapcheck // a sentence already
	}
	if err := s.startPostgres(ctx); err != nil {
		return s, err
	}
	if s.chosen("outage") {
		if s.redis, err = s.services.StartRedis(ctx); err != nil {
			return s, err //nolint:wrapcheck // a sentence already
		}
	}
	if s.chosen("tls") {
		if err := s.startSecure(ctx); err != nil {
			return s, err
		}
	}
	s.client, err = kgo.NewClient(kgo.SeedBrokers(s.services.KafkaBrokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.MaxBufferedRecords(20_000))
	if err != nil {
		return s, fmt.Errorf("opening a Kafka client: %w", err)
	}
	s.admin = kadm.NewClient(s.client)
	return s, nil
}

// build makes the program as it is released, without the race detector; no flag
// makes Go compile again what is compiled.
func (s *stage) build(ctx context.Context) error {
	say("building the filter")
	s.binary = filepath.Join(s.dir, "dedup")
	c := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", s.binary, "dedupledger/cmd/dedup")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building the filter: %w\n%s", err, out)
	}
	return nil
}

// startPostgres starts a server with memory for millions of rows, unless the
// environment names one, and it need not be stopped: that of the tests has little.
func (s *stage) startPostgres(ctx context.Context) error {
	s.postgres, s.create = s.services.PostgresURL, s.services.CreateDatabase
	if os.Getenv(devservices.EnvPostgres) != "" && !s.chosen("outage") {
		return nil
	}
	p, err := s.services.StartPostgres(ctx, postgresMemory()...)
	if err != nil {
		return err //nolint:wrapcheck // a sentence already
	}
	s.server, s.postgres, s.create = p, p.URL(), p.CreateDatabase
	return nil
}

func postgresMemory() []string { return []string{"shared_buffers=1GB", "wal_buffers=64MB"} }

func (s *stage) close() error {
	var errs []error
	if s.client != nil {
		s.client.Close()
	}
	if s.services != nil {
		errs = append(errs, s.services.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func (s *stage) chosen(name string) bool { return slices.Contains(s.o.only, name) }

// checkpoint writes out what the phase before left in memory, which the next
// would have to wait for. A server that is not ours may forbid it.
func (s *stage) checkpoint(ctx context.Context) {
	if err := s.onPostgres(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "checkpoint")
		return err
	}); err != nil {
		say("no checkpoint before the phase: %v", err)
	}
}

func (s *stage) onPostgres(ctx context.Context, do func(*pgx.Conn) error) error {
	return onDatabase(ctx, s.postgres, do)
}

func onDatabase(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	return do(c)
}
