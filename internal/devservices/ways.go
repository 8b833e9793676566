package devservices

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

const (
	sourceEnvironment = "environment"
	sourceDocker      = ServicesDocker
	sourceNative      = ServicesNative
)

// endpoint is where a service was found.
type endpoint struct {
	name, version, source string
	address               string // as the environment variable spells it
	shown                 string // without credentials
}

func (e *endpoint) String() string {
	return fmt.Sprintf("%s %s %s %s", e.name, e.version, e.source, e.shown)
}

// way is one way to a service; absentError says that it is not open here.
type way struct {
	source string
	get    func(ctx context.Context) (endpoint, error)
}

type absentError struct{ why string }

func (e *absentError) Error() string { return e.why }

func absent(why string) error { return &absentError{why} }

// UnavailableError says that a service cannot be had, and all ways to get it.
type UnavailableError struct {
	Service  string
	Variable string   // environment variable that may name it; "" where none would help
	Tried    []string // why each way was not open
}

func (e *UnavailableError) Error() string {
	how := "run `make services`"
	if e.Variable != "" {
		how = "set " + e.Variable + " to one that runs, or " + how
	}
	return fmt.Sprintf("no %s: %s; %s", e.Service, strings.Join(e.Tried, "; "), how)
}

// unavailable turns an absentError into the sentence for people, of a service
// of our own: the environment names none of these.
func unavailable(service string, err error) error {
	if a, ok := errors.AsType[*absentError](err); ok {
		return &UnavailableError{Service: service, Tried: []string{a.why}}
	}
	return err
}

// find takes the first open way. A way that is open and fails is an error, not
// a reason to take the next: a test run must not quietly use another service
// than the one it was told to.
func (s *Services) find(ctx context.Context, to *endpoint, service, variable string, ways []way) error {
	fail := &UnavailableError{Service: service, Variable: variable}
	for _, w := range ways {
		e, err := w.get(ctx)
		if a, ok := errors.AsType[*absentError](err); ok {
			fail.Tried = append(fail.Tried, a.why)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s from %s: %w", service, w.source, err)
		}
		e.name, e.source = service, w.source
		*to = e
		return nil
	}
	return fail
}

// fromEnvironment asks the service that a variable names for its version.
func fromEnvironment(variable string, version func(ctx context.Context, address string) (string, error)) way {
	return way{sourceEnvironment, func(ctx context.Context) (endpoint, error) {
		addr := os.Getenv(variable)
		if addr == "" {
			return endpoint{}, absent(variable + " is not set")
		}
		ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("it did not answer within %s", readyWithin))
		defer cancel()
		v, err := version(ctx, addr)
		if err != nil {
			return endpoint{}, fmt.Errorf("%s: %w", variable, err)
		}
		return endpoint{version: v, address: addr, shown: withoutCredentials(addr)}, nil
	}}
}

func withoutCredentials(addr string) string {
	if u, err := url.Parse(addr); err == nil && u.Host != "" {
		return u.Host
	}
	return addr
}

// started are the ways to a server of our own: a container or, where no engine
// is, a native process.
func (s *Services) started(get func(ctx context.Context) (endpoint, error)) []way {
	if s.engine != nil {
		return []way{{sourceDocker, get}}
	}
	none := func(context.Context) (endpoint, error) { return endpoint{}, absent(s.noEngine) }
	return []way{{sourceDocker, none}, {sourceNative, get}}
}

func (s *Services) kafkaWays() []way {
	ask := func(ctx context.Context, addr string) (string, error) {
		return kafkaVersion(ctx, strings.Split(addr, ","))
	}
	return append([]way{fromEnvironment(EnvKafka, ask)}, s.started(func(ctx context.Context) (endpoint, error) {
		s.opts.say("starting Kafka")
		k, err := s.StartKafka(ctx, KafkaOptions{Restricted: s.engine == nil})
		if err != nil {
			return endpoint{}, reopened(err)
		}
		if s.engine == nil {
			s.KafkaRestricted = k.RestrictedAddr()
		}
		return endpoint{version: k.version, address: k.Addr(), shown: k.Addr()}, nil
	})...)
}

func (s *Services) redisWays() []way {
	return append([]way{fromEnvironment(EnvRedis, redisVersion)}, s.started(func(ctx context.Context) (endpoint, error) {
		s.opts.say("starting Redis")
		r, err := s.StartRedis(ctx)
		if err != nil {
			return endpoint{}, reopened(err)
		}
		v, err := redisVersion(ctx, r.Addr())
		return endpoint{version: v, address: r.Addr(), shown: r.Addr()}, err
	})...)
}

func (s *Services) postgresWays() []way {
	return append([]way{fromEnvironment(EnvPostgres, postgresVersion)}, s.started(func(ctx context.Context) (endpoint, error) {
		s.opts.say("starting PostgreSQL")
		p, err := s.StartPostgres(ctx)
		if err != nil {
			return endpoint{}, reopened(err)
		}
		v, err := postgresVersion(ctx, p.URL())
		return endpoint{version: v, address: p.URL(), shown: p.Addr()}, err
	})...)
}

// reopened turns the sentence for people back into a way that is not open.
func reopened(err error) error {
	if u, ok := errors.AsType[*UnavailableError](err); ok {
		return absent(strings.Join(u.Tried, "; "))
	}
	return err
}
