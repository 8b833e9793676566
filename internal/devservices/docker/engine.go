package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"dedupledger/internal/devservices"
)

// EnvRun hands the name of a run to programs below with-services, so that it
// can remove what they leave when they are killed.
const EnvRun = "DEDUP_TEST_RUN"

// runLabel of a container names its run.
const runLabel = "dedup-ledger.run"

// answersWithin bounds the question whether an engine is there.
const answersWithin = 10 * time.Second

// Engine is a Docker engine that answers.
type Engine struct {
	provider *testcontainers.DockerProvider
	host     string
	run      string
	ours     bool // the run is: what is left of it is ours to remove
}

// Connect finds the engine. The error is a *devservices.NoEngineError where none
// answers.
func Connect(ctx context.Context) (devservices.Engine, error) {
	// What it would print of each container is in a failed test's log anyway.
	log.SetDefault(log.NewNoopLogger())
	p, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(log.NewNoopLogger()))
	if err != nil {
		return nil, &devservices.NoEngineError{Err: err}
	}
	ping, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if err := p.Health(ping); err != nil {
		return nil, &devservices.NoEngineError{Err: errors.Join(err, p.Close())}
	}
	host, err := p.DaemonHost(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("finding where containers are reached: %w", err), p.Close())
	}
	if host == "localhost" {
		host = "127.0.0.1" // ports are published there, and not at ::1
	}
	e := &Engine{provider: p, host: host, run: os.Getenv(EnvRun)}
	if e.run == "" {
		e.run, e.ours = uuid.NewString(), true
	}
	return e, nil
}

// Host is where published ports are reached.
func (e *Engine) Host() string { return e.host }

// Environ hands the run on.
func (e *Engine) Environ() []string { return []string{EnvRun + "=" + e.run} }

// Create makes a container, labelled with the run.
func (e *Engine) Create(ctx context.Context, spec devservices.ContainerSpec) (devservices.Container, error) {
	port, err := network.ParsePort(strconv.Itoa(spec.Port) + "/tcp")
	if err != nil {
		return nil, fmt.Errorf("port %d: %w", spec.Port, err)
	}
	published := network.PortBinding{HostPort: strconv.Itoa(spec.HostPort)}
	if ip := net.ParseIP(e.host); ip != nil && ip.IsLoopback() {
		published.HostIP = netip.MustParseAddr(e.host)
	}
	c, err := e.provider.CreateContainer(ctx, testcontainers.ContainerRequest{
		Image: spec.Image, Cmd: spec.Command, Env: spec.Env,
		ExposedPorts: []string{port.String()},
		Labels:       map[string]string{runLabel: e.run},
		HostConfigModifier: func(h *container.HostConfig) {
			h.PortBindings = network.PortMap{port: {published}}
		},
	})
	if c == nil {
		return nil, err //nolint:wrapcheck // the caller says what was wanted
	}
	return &box{c: c, client: e.provider.Client(), name: spec.Image}, err
}

// Close removes the run's containers, and with them those of programs below that
// were killed. A program that was handed its run leaves that to the one above.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), removedWithin)
	defer cancel()
	var errs []error
	if e.ours {
		errs = append(errs, e.sweep(ctx))
	}
	return errors.Join(append(errs, e.provider.Close())...)
}

func (e *Engine) sweep(ctx context.Context) error {
	c := e.provider.Client()
	left, err := c.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", runLabel+"="+e.run),
	})
	if err != nil {
		return fmt.Errorf("listing the containers of this run: %w", err)
	}
	var errs []error
	for i := range left.Items {
		if err := remove(ctx, c, left.Items[i].ID); err != nil {
			errs = append(errs, fmt.Errorf("removing container %s of %s: %w", left.Items[i].ID, left.Items[i].Image, err))
		}
	}
	return errors.Join(errs...)
}
