package devservices

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// readyWithin is how long a server may take until it answers.
	readyWithin = 60 * time.Second
	// askWithin bounds one question to a server that may not answer yet.
	askWithin = 3 * time.Second
	// startTries with new ports, when one was lost between our release of it
	// and the server's bind.
	startTries = 5
)

var errPortLost = errors.New("another process took its port")

// Server is a native server of our own: started, stopped, killed and frozen at
// will, always on the same port and data folder.
type Server struct {
	name    string
	folder  string // everything of it; removed by Close
	ports   []int
	arrange func(ports []int) (command, error) // before the first start
	ready   func(ctx context.Context) error    // asks it once, by its protocol
	dispose syscall.Signal                     // ends it when its data is not wanted any more

	mu   sync.Mutex
	cmd  command
	proc *process
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
	cmd, err := s.arrange(s.ports)
	release()
	if err != nil {
		return err
	}
	s.cmd = cmd
	return s.Start(ctx)
}

// Start starts the server again on its port and data, and returns when it
// answers.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && s.proc.alive() {
		return nil
	}
	p, err := spawn(s.cmd)
	if err != nil {
		return err
	}
	s.proc = p
	if err := s.await(ctx, p); err != nil {
		return errors.Join(err, p.kill())
	}
	return nil
}

func (s *Server) await(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin,
		fmt.Errorf("%s did not answer within %s", s.name, readyWithin))
	defer cancel()
	var last error
	err := poll(ctx, func() (bool, error) {
		if !p.alive() {
			return false, s.endedEarly(p)
		}
		ask, done := context.WithTimeout(ctx, askWithin)
		defer done()
		last = s.ready(ask)
		return last == nil, nil
	})
	if err != nil && p.alive() {
		return fmt.Errorf("waiting for %s: %w (last answer: %w)%s", s.name, err, last, s.logged())
	}
	return err
}

func (s *Server) endedEarly(p *process) error {
	for _, port := range s.ports {
		if portTaken(port) {
			return fmt.Errorf("starting %s on port %d: %w", s.name, port, errPortLost)
		}
	}
	return fmt.Errorf("%s ended instead of answering: %w%s", s.name, p.err, s.logged())
}

func (s *Server) logged() string {
	if t := tail(s.cmd.log); t != "" {
		return "\nend of its log:\n" + t
	}
	return ""
}

// Stop ends the server cleanly. Start starts it again.
func (s *Server) Stop(ctx context.Context) error {
	return s.with(func(p *process) error { return p.end(ctx) })
}

// Kill ends the server with SIGKILL, all its processes at once.
func (s *Server) Kill() error {
	return s.with(func(p *process) error { return p.kill() })
}

// Pause freezes the server (SIGSTOP, all its processes): connections stay open
// and nothing is answered.
func (s *Server) Pause() error {
	return s.with(func(p *process) error { return p.freeze() })
}

// Continue ends a Pause.
func (s *Server) Continue() error {
	return s.with(func(p *process) error { return p.thaw() })
}

// Close ends the server and removes its data.
func (s *Server) Close() error {
	return errors.Join(s.discard(), os.RemoveAll(s.folder))
}

// discard ends the server in the quickest way that leaves nothing behind
// outside its folder.
func (s *Server) discard() error {
	return s.with(func(p *process) error {
		p.cmd.asked = s.dispose
		return p.end(context.Background())
	})
}

func (s *Server) with(do func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	if err := do(s.proc); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// Addr is host:port of the server.
func (s *Server) Addr() string { return address(s.ports[0]) }

// Log is the end of what the server wrote.
func (s *Server) Log() string { return tail(s.cmd.log) }

// PID is the process id of the server's first process.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid
}
