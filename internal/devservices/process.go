package devservices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end after it was asked to.
const stopGrace = 30 * time.Second

// tailBytes of a process's log are put into errors.
const tailBytes = 4096

// command is a process to start.
type command struct {
	path    string
	args    []string
	environ []string // nil: our own
	dir     string
	user    *account // nil: as ourselves
	log     string   // file that stdout and stderr are appended to

	orphaned syscall.Signal // sent by the kernel when we die
	asked    syscall.Signal // asks it to end
}

func (c command) start(context.Context) (life, error) {
	p, err := spawn(c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (c command) written() string { return tail(c.log) }

// process is a started command in a process group of its own, so that a
// Ctrl-C in the terminal reaches only us and the order of ending is ours.
type process struct {
	cmd  command
	pid  int
	done chan struct{} // closed when it has ended; err is set before
	err  error

	mu     sync.Mutex
	frozen []int
}

func spawn(c command) (*process, error) {
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", c.path, err)
	}
	x := exec.Command(c.path, c.args...)
	x.Env = c.environ
	x.Dir, x.Stdout, x.Stderr = c.dir, out, out
	x.SysProcAttr = attributes(c)

	p := &process{cmd: c, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(x, out, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.path, err)
	}
	return p, nil
}

// run starts the command and waits for it on one locked thread. The kernel
// sends the parent-death signal when the thread that forked ends, not the
// process: were it any thread of the scheduler's, the signal could come while
// we live, when the runtime retires that thread.
func (p *process) run(x *exec.Cmd, out io.Closer, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer out.Close()
	if err := x.Start(); err != nil {
		started <- err
		return
	}
	p.pid = x.Process.Pid
	started <- nil
	p.err = x.Wait()
	close(p.done)
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// end asks the process to end, and makes it after stopGrace or when ctx ends.
func (p *process) end(ctx context.Context) error {
	if err := p.thaw(); err != nil {
		return err
	}
	if !p.alive() {
		return nil
	}
	if err := p.signal(p.cmd.asked); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopGrace,
		fmt.Errorf("%s did not end within %s", p.cmd.path, stopGrace))
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.kill())
	}
}

// kill ends the process and all its descendants with SIGKILL and returns when
// they are gone. They are frozen first, so that none makes another meanwhile.
func (p *process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := p.freeze(); err != nil {
		return err
	}
	p.mu.Lock()
	pids := p.frozen
	p.frozen = nil
	p.mu.Unlock()
	for _, pid := range pids {
		if err := signalPID(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	<-p.done
	return awaitGone(pids)
}

// freeze stops the process and its descendants, parents first: a stopped
// parent makes no child that would be missed. PostgreSQL's backends lead
// sessions of their own, so a signal to the process group would miss them.
func (p *process) freeze() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for todo := []int{p.pid}; len(todo) > 0; todo = todo[1:] {
		if err := signalPID(todo[0], syscall.SIGSTOP); err != nil {
			return err
		}
		p.frozen = append(p.frozen, todo[0])
		kids, err := children(todo[0])
		if err != nil {
			return err
		}
		todo = append(todo, kids...)
	}
	return nil
}

// thaw continues what freeze stopped, children first.
func (p *process) thaw() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pid := range slices.Backward(p.frozen) {
		if err := signalPID(pid, syscall.SIGCONT); err != nil {
			return err
		}
	}
	p.frozen = nil
	return nil
}

// exit is valid after the end: nil is exit code 0.
func (p *process) exit() error { return p.err }

// dispose ends it by a signal of the caller's choice.
func (p *process) dispose(sig syscall.Signal) error {
	p.cmd.asked = sig
	return p.end(context.Background())
}

func (p *process) id() int { return p.pid }

func (p *process) signal(sig syscall.Signal) error {
	return signalPID(p.pid, sig)
}

// signalPID takes a process that is gone for success: it ended by itself.
func signalPID(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to process %d: %w", sig, pid, err)
	}
	return nil
}

// tail is the end of the process's log.
func tail(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-tailBytes), io.SeekStart)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
