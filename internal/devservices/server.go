package devservices

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// readyWithin is how long a server may take until it answers. One that ends
	// instead is not waited for, so this bounds only one that hangs: on a machine
	// that does ten things at once Kafka took over a minute to start.
	readyWithin = 3 * time.Minute
	// askWithin bounds one question to a server that may not answer yet.
	askWithin = 3 * time.Second
	// startTries with new ports, when one was lost between our release of it
	// and the server's bind.
	startTries = 5
)

var errPortLost = errors.New("another process took its port")

// Server is a server of our own, a native process or a container: started, stopped, killed and frozen at
// will, always on the same port and data folder.
type Server struct {
	name    string
	folder  string // everything of it; removed by Close
	host    string // "" is loopback
	ports   []int
	arrange func(ports []int) (unit, error) // before the first start
	ready   func(ctx context.Context) error // asks it once, by its protocol
	dispose syscall.Signal                  // ends it when its data is not wanted any more

	mu   sync.Mutex
	unit unit
	life life
	box  *contained // nil: a native process
}

// unit is what a server is started from: a command, or a container.
type unit interface {
	start(ctx context.Context) (life, error)
	written() string // the end of its log
}

// life is a server from a start to its end.
type life interface {
	alive() bool
	exit() error // why it ended
	end(ctx context.Context) error
	kill() error
	freeze() error
	thaw() error
	dispose(sig syscall.Signal) error // as quickly as leaves nothing behind but the data
	id() int
}

// launch starts a new server on ports of our choice.
func (s *Server) launch(ctx context.Context, ports int) error {
	for try := 1; ; try++ {
		err := s.tryPorts(ctx, ports)
		if err == nil || !errors.Is(err, errPortLost) || try == startTries {
			return err
		}
	}
}

func (s *Server) tryPorts(ctx context.Context, n int) error {
	held := make([]*heldPort, 0, n)
	release := func() {
		for _, h := range held {
			h.release()
		}
	}
	s.ports = nil
	for range n {
		h, err := holdPort()
		if err != nil {
			release()
			return err
		}
		held, s.ports = append(held, h), append(s.ports, h.port)
	}
	u, err := s.arrange(s.ports)
	release()
	if err != nil {
		return err
	}
	s.unit = u
	return s.Start(ctx)
}

// Start starts the server again on its port and data, and returns when it
// answers.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil && s.life.alive() {
		return nil
	}
	l, err := s.unit.start(ctx)
	if err != nil {
		// An engine publishes the port itself, and says in words that it cannot.
		if s.box != nil && s.portLost() {
			return fmt.Errorf("starting %s on port %d: %w", s.name, s.ports[0], errPortLost)
		}
		return err //nolint:wrapcheck // says what was tried
	}
	s.life = l
	if err := s.await(ctx, l); err != nil {
		return errors.Join(err, l.kill())
	}
	return nil
}

func (s *Server) await(ctx context.Context, l life) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin,
		fmt.Errorf("%s did not answer within %s", s.name, readyWithin))
	defer cancel()
	var last error
	err := poll(ctx, func() (bool, error) {
		if !l.alive() {
			return false, s.endedEarly(l)
		}
		ask, done := context.WithTimeout(ctx, askWithin)
		defer done()
		last = s.ready(ask)
		return last == nil, nil
	})
	if err != nil && l.alive() {
		return fmt.Errorf("waiting for %s: %w (last answer: %w)%s", s.name, err, last, s.logged())
	}
	return err
}

func (s *Server) endedEarly(l life) error {
	if s.portLost() {
		return fmt.Errorf("starting %s on port %d: %w", s.name, s.ports[0], errPortLost)
	}
	return fmt.Errorf("%s ended instead of answering: %w%s", s.name, l.exit(), s.logged())
}

func (s *Server) portLost() bool { return slices.ContainsFunc(s.ports, portTaken) }

func (s *Server) logged() string {
	if t := s.Log(); t != "" {
		return "\nend of its log:\n" + t
	}
	return ""
}

// Stop ends the server cleanly. Start starts it again.
func (s *Server) Stop(ctx context.Context) error {
	return s.with(func(l life) error { return l.end(ctx) })
}

// Kill ends the server with SIGKILL, all its processes at once.
func (s *Server) Kill() error {
	return s.with(func(l life) error { return l.kill() })
}

// Pause freezes the server (SIGSTOP, all its processes): connections stay open
// and nothing is answered.
func (s *Server) Pause() error {
	return s.with(func(l life) error { return l.freeze() })
}

// Continue ends a Pause.
func (s *Server) Continue() error {
	return s.with(func(l life) error { return l.thaw() })
}

// Close ends the server and removes its data.
func (s *Server) Close() error {
	var err error
	if s.box == nil { // else its container goes with all that is in it
		err = s.discard()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.remove(), os.RemoveAll(s.folder))
}

// discard ends the server in the quickest way that leaves nothing behind
// outside its folder.
func (s *Server) discard() error {
	return s.with(func(l life) error { return l.dispose(s.dispose) })
}

func (s *Server) with(do func(life) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return nil
	}
	if err := do(s.life); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// Addr is host:port of the server.
func (s *Server) Addr() string {
	if s.host != "" {
		return net.JoinHostPort(s.host, strconv.Itoa(s.ports[0]))
	}
	return address(s.ports[0])
}

// Log is the end of what the server wrote.
func (s *Server) Log() string {
	if s.unit == nil {
		return ""
	}
	return s.unit.written()
}

// PID is the process id of the server's first process, of a container on the
// engine's machine; 0 before the first start.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return 0
	}
	return s.life.id()
}
