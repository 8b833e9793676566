package devservices

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
)

// Engine starts containers. internal/devservices/docker has the one there is. It
// is handed in by Options.Connect: the program, which has this package for its
// demo, carries no Docker client.
type Engine interface {
	// Host is where the ports of containers are reached.
	Host() string
	// Create makes a container and does not start it. An image that is not
	// there is pulled.
	Create(ctx context.Context, spec ContainerSpec) (Container, error)
	// Environ is what programs of the same run need, as NAME=value.
	Environ() []string
	// Close removes what is left of the run's containers.
	Close() error
}

// NoEngineError says why there is no Docker engine.
type NoEngineError struct{ Err error }

func (e *NoEngineError) Error() string { return "no Docker engine answers: " + e.Err.Error() }
func (e *NoEngineError) Unwrap() error { return e.Err }

// ContainerSpec is a container to make.
type ContainerSpec struct {
	Image    string
	Command  []string
	Env      map[string]string
	Port     int // in the container
	HostPort int // where it is published, on loopback if the engine is of this machine
}

// Container is one that was made. What is called on a container that is gone or
// in another state is an error.
type Container interface {
	Start(ctx context.Context) error
	// Stop asks it to end by its image's signal and kills it when ctx ends or
	// it takes too long, which is an error.
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	Pause(ctx context.Context) error
	Continue(ctx context.Context) error
	State(ctx context.Context) (ContainerState, error)
	// Address is where other containers of the engine reach it, without a port.
	Address(ctx context.Context) (string, error)
	// Log is the end of what it wrote, in bytes at most.
	Log(ctx context.Context, most int) (string, error)
	// CopyFrom is a folder as a tar archive, whose names begin with the folder's.
	CopyFrom(ctx context.Context, folder string) (io.ReadCloser, error)
	// CopyTo puts such an archive below a folder, of a container that need not run.
	CopyTo(ctx context.Context, folder string, archive io.Reader) error
	// Remove ends it and removes it with its volumes.
	Remove(ctx context.Context) error
}

// ContainerState is what the engine knows of a container.
type ContainerState struct {
	Running  bool
	ExitCode int
	PID      int // on the engine's machine
}

// contained is a server in a container: what a server is started from, and its
// life as well, since a container outlives its processes.
type contained struct {
	c      Container
	paused bool
}

// contain makes the container of a server, in the place of the one before.
func (s *Server) contain(ctx context.Context, engine Engine, spec ContainerSpec) (unit, error) {
	if err := s.remove(); err != nil {
		return nil, err
	}
	spec.HostPort = s.ports[0]
	c, err := engine.Create(ctx, spec)
	if c != nil {
		s.box = &contained{c: c}
	}
	if err != nil {
		return nil, fmt.Errorf("making a container of %s: %w", spec.Image, err)
	}
	return s.box, nil
}

func (s *Server) remove() error {
	if s.box == nil {
		return nil
	}
	err := s.box.c.Remove(context.Background())
	s.box, s.life = nil, nil
	return err //nolint:wrapcheck // says what was tried
}

func (b *contained) start(ctx context.Context) (life, error) {
	b.paused = false
	return b, b.c.Start(ctx) //nolint:wrapcheck // says what was tried
}

func (b *contained) written() string {
	text, err := b.c.Log(context.Background(), tailBytes)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text)
}

// alive takes a container of which nothing can be learned for one that lives:
// what waits for it has a bound of its own.
func (b *contained) alive() bool {
	st, err := b.c.State(context.Background())
	return err != nil || st.Running
}

func (b *contained) exit() error {
	st, err := b.c.State(context.Background())
	if err != nil {
		return err //nolint:wrapcheck // says what was tried
	}
	return fmt.Errorf("exit status %d", st.ExitCode)
}

func (b *contained) end(ctx context.Context) error {
	if err := b.thaw(); err != nil || !b.alive() {
		return err
	}
	return b.c.Stop(ctx) //nolint:wrapcheck // says what was tried
}

func (b *contained) kill() error {
	if !b.alive() {
		return nil
	}
	b.paused = false
	return b.c.Kill(context.Background()) //nolint:wrapcheck // says what was tried
}

func (b *contained) freeze() error {
	if b.paused || !b.alive() {
		return nil
	}
	b.paused = true
	return b.c.Pause(context.Background()) //nolint:wrapcheck // says what was tried
}

func (b *contained) thaw() error {
	if !b.paused {
		return nil
	}
	b.paused = false
	return b.c.Continue(context.Background()) //nolint:wrapcheck // says what was tried
}

// dispose leaves the container to remove, and its data.
func (b *contained) dispose(syscall.Signal) error { return b.kill() }

func (b *contained) id() int {
	st, err := b.c.State(context.Background())
	if err != nil {
		return 0
	}
	return st.PID
}

// kafkaPort is where clients come in; the broker reaches itself and its
// controller inside.
const kafkaPort = 9092

// kafkaContainer sets the image up by KAFKA_*, each a property of
// kafkaProperties.
func kafkaContainer(advertised string) ContainerSpec {
	return ContainerSpec{Image: KafkaImage, Port: kafkaPort, Env: map[string]string{
		"KAFKA_HEAP_OPTS": kafkaHeap,
		// Three virtual machines start, and none lives for long: the optimising
		// compiler would cost more than it gives.
		"KAFKA_JVM_PERFORMANCE_OPTS":           "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
		"KAFKA_NODE_ID":                        "1",
		"KAFKA_PROCESS_ROLES":                  "broker,controller",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":       "1@localhost:9094",
		"KAFKA_CONTROLLER_LISTENER_NAMES":      "CONTROLLER",
		"KAFKA_LISTENERS":                      fmt.Sprintf("PLAINTEXT://0.0.0.0:%d,BROKER://localhost:9093,CONTROLLER://localhost:9094", kafkaPort),
		"KAFKA_ADVERTISED_LISTENERS":           "PLAINTEXT://" + advertised + ",BROKER://localhost:9093",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"KAFKA_INTER_BROKER_LISTENER_NAME":     "BROKER",
		"KAFKA_LOG_DIRS":                       "/var/lib/kafka/data",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":      "false",

		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                 "1",
		"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":                     "4",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":         "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                    "1",
		"KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS":             "4",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":                 "0",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR":            "1",
	}}
}

func containKafka(ctx context.Context, engine Engine, folder string, o KafkaOptions) (*Kafka, error) {
	k := &Kafka{Server: Server{name: "kafka", folder: folder, host: engine.Host()}}
	_, k.version, _ = strings.Cut(KafkaImage, ":")
	k.arrange = func([]int) (unit, error) {
		advertised := o.Advertised
		if advertised == "" {
			advertised = k.Addr()
		}
		return k.contain(ctx, engine, kafkaContainer(advertised))
	}
	k.ready = func(ctx context.Context) error {
		_, err := kafkaVersion(ctx, []string{k.Addr()})
		return err
	}
	return k, k.launch(ctx, 1)
}

const redisPort = 6379

func containRedis(ctx context.Context, engine Engine, folder string) (*Redis, error) {
	r := &Redis{Server{name: "redis", folder: folder, host: engine.Host()}}
	r.arrange = func([]int) (unit, error) {
		return r.contain(ctx, engine, ContainerSpec{
			Image: RedisImage, Port: redisPort, Command: []string{"redis-server", "--save", "", "--appendonly", "no"},
		})
	}
	r.ready = func(ctx context.Context) error {
		_, err := redisVersion(ctx, r.Addr())
		return err
	}
	return r, r.launch(ctx, 1)
}

// containedData is where the image keeps PostgreSQL's data, in a volume.
const containedData = "/var/lib/postgresql/data"

func containPostgres(ctx context.Context, engine Engine, folder string, settings []string) (*Postgres, error) {
	p := &Postgres{Server: Server{name: "postgres", folder: folder, host: engine.Host()}}
	args := []string{"postgres"}
	for _, s := range append(postgresSettings(), settings...) {
		args = append(args, "-c", s)
	}
	p.recontain = func(ctx context.Context) (unit, error) {
		return p.contain(ctx, engine, ContainerSpec{
			Image: PostgresImage, Port: 5432, Command: args,
			Env: map[string]string{"POSTGRES_HOST_AUTH_METHOD": "trust", "POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C --no-sync"},
		})
	}
	p.arrange = func([]int) (unit, error) { return p.recontain(ctx) }
	p.ready = func(ctx context.Context) error {
		_, err := postgresVersion(ctx, p.URL())
		return err
	}
	return p, p.launch(ctx, 1)
}

// copyContained copies the data of a frozen server out of its container, into an
// archive.
func (p *Postgres) copyContained() (copied string, err error) {
	archive, err := p.box.c.CopyFrom(context.Background(), containedData)
	if err != nil {
		return "", err //nolint:wrapcheck // says what was tried
	}
	defer func() { _ = archive.Close() }()
	f, err := os.CreateTemp(p.folder, "copy-*.tar")
	if err != nil {
		return "", fmt.Errorf("making a file for a copy of PostgreSQL's data: %w", err)
	}
	if _, err := io.Copy(f, archive); err != nil {
		return "", errors.Join(fmt.Errorf("copying PostgreSQL's data out of its container: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("writing a copy of PostgreSQL's data: %w", err)
	}
	return f.Name(), nil
}

// restoreContained makes a new container at the same address with the copy in
// it.
func (p *Postgres) restoreContained(ctx context.Context, copied string) error {
	f, err := os.Open(copied)
	if err != nil {
		return fmt.Errorf("opening the copy of PostgreSQL's data: %w", err)
	}
	defer func() { _ = f.Close() }()
	p.mu.Lock()
	u, err := p.recontain(ctx)
	if err == nil {
		p.unit = u
		err = p.box.c.CopyTo(ctx, path.Dir(containedData), f)
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.Start(ctx)
}

// demoteContained puts the file of a standby into a stopped container. Whose the
// file is only the image knows; the server removes it when it is promoted.
func (p *Postgres) demoteContained(ctx context.Context) error {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	name := path.Join(path.Base(containedData), standbySignal)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: name, Mode: 0o666}), w.Close()); err != nil {
		return fmt.Errorf("making a standby's file: %w", err)
	}
	return p.box.c.CopyTo(ctx, path.Dir(containedData), &archive) //nolint:wrapcheck // says what was tried
}
