package devservices

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Child is a program of ours, run beside the services for a demo or a test. It
// is killed when its parent dies (on Linux).
type Child struct{ p *process }

// StartChild starts a program with our environment and env (NAME=value) added.
// Its output is appended to the file log.
func StartChild(path string, args, env []string, log string) (*Child, error) {
	return StartChildIn(append(os.Environ(), env...), path, args, log)
}

// StartChildIn starts a program with exactly this environment (NAME=value); nil
// is an empty one. Its output is appended to the file log.
func StartChildIn(environ []string, path string, args []string, log string) (*Child, error) {
	p, err := spawn(command{
		path: path, args: args, environ: append([]string{}, environ...), log: log,
		orphaned: syscall.SIGKILL, asked: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	return &Child{p}, nil
}

// PID is its process id.
func (c *Child) PID() int { return c.p.pid }

// Done is closed when it has ended.
func (c *Child) Done() <-chan struct{} { return c.p.done }

// ExitCode is valid after Done: -1 when a signal ended it.
func (c *Child) ExitCode() int {
	if e, ok := errors.AsType[*exec.ExitError](c.p.err); ok {
		return e.ExitCode()
	}
	return 0
}

// Stop sends SIGTERM and waits until it has ended; when ctx ends before, or it
// takes too long, it is killed and that is the error.
func (c *Child) Stop(ctx context.Context) error { return c.p.end(ctx) }

// Kill ends it with SIGKILL and waits until it is gone.
func (c *Child) Kill() error { return c.p.kill() }

// Pause freezes it (SIGSTOP).
func (c *Child) Pause() error { return c.p.freeze() }

// Continue ends a Pause (SIGCONT).
func (c *Child) Continue() error { return c.p.thaw() }

// Log is the end of what it wrote.
func (c *Child) Log() string { return tail(c.p.cmd.log) }
