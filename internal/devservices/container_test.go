package devservices

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// noContainers is an engine that answers and can do nothing. Containers as they
// are, are tested in package docker, where there is an engine.
type noContainers struct{ closed int }

var errFull = errors.New("the disk is full")

func (*noContainers) Host() string { return "127.0.0.1" }
func (*noContainers) Create(context.Context, ContainerSpec) (Container, error) {
	return nil, errFull
}
func (*noContainers) Environ() []string { return []string{"RUN=1"} }
func (e *noContainers) Close() error {
	e.closed++
	return nil
}

// TestChoice: the environment decides between containers and native processes,
// else what is there.
func TestChoice(t *testing.T) {
	e := &noContainers{}
	answers := func(context.Context) (Engine, error) { return e, nil }
	nobody := func(context.Context) (Engine, error) { return nil, &NoEngineError{Err: errors.New("no socket")} }
	broken := func(context.Context) (Engine, error) { return nil, errFull }
	for _, c := range []struct {
		name, choice string
		connect      func(context.Context) (Engine, error)
		engine       Engine
		err          string
	}{
		{"an engine answers", "", answers, e, ""},
		{"docker is wanted and answers", "docker", answers, e, ""},
		{"native is wanted, nobody asks", "native", broken, nil, ""},
		{"no engine answers", "", nobody, nil, ""},
		{"docker is wanted and does not answer", "docker", nobody, nil, "DEDUP_TEST_SERVICES is docker, but no Docker engine answers: no socket"},
		{"an engine that fails is no reason to go native", "", broken, nil, "connecting to Docker: the disk is full"},
		{"no client is linked in", "", nil, nil, ""},
		{"docker is wanted, no client is linked in", "docker", nil, nil, "this program starts no containers"},
		{"a slip", "podman", answers, nil, `DEDUP_TEST_SERVICES is "podman": write docker or native`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(EnvServices, c.choice)
			s, err := New(t.Context(), Options{Connect: c.connect})
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.engine, s.engine)
			closed := e.closed
			require.NoError(t, s.Close())
			if c.engine != nil {
				require.Equal(t, closed+1, e.closed)
			}
		})
	}
}

// TestWayThatIsOpenAndFails: the next is not taken.
func TestWayThatIsOpenAndFails(t *testing.T) {
	for _, v := range []string{EnvKafka, EnvRedis, EnvPostgres, EnvLine, EnvServices} {
		t.Setenv(v, "")
	}
	e := &noContainers{}
	_, err := Start(t.Context(), Options{Connect: func(context.Context) (Engine, error) { return e, nil }})
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, " from docker: making a container of ")
	require.Equal(t, 1, e.closed)
}

// TestServersOfItsOwnComeFromTheSame: what runs below with-services is told.
func TestServersOfItsOwnComeFromTheSame(t *testing.T) {
	t.Parallel()
	require.Contains(t, (&Services{}).Environ(), EnvServices+"="+ServicesNative)
	environ := (&Services{engine: &noContainers{}}).Environ()
	require.Contains(t, environ, EnvServices+"="+ServicesDocker)
	require.Contains(t, environ, "RUN=1")
}
