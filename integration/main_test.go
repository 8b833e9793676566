package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/docker"

	"go.uber.org/goleak"
)

// shared is what all tests of a run use. TestMain sets it before the first test
// and no test changes it: Go gives TestMain no other way to hand it over.
var shared *suite

type suite struct {
	services *devservices.Services
	dir      string
	binary   func() (string, error) // builds the program, once
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s, err := newSuite(ctx)
	if err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "integration:", err)
		return 1
	}
	shared = s
	fmt.Println(s.services.Describe())
	code := s.run(ctx, m)
	stop()
	if err := s.close(); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = max(code, 1)
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = max(code, 1)
	}
	return code
}

// interrupted is the exit code of what SIGINT or SIGTERM has ended.
const interrupted = 130

// run runs the tests. An interrupt ends the services first: containers do not
// end with their parent.
func (s *suite) run(ctx context.Context, m *testing.M) int {
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-done:
		case <-ctx.Done():
			fmt.Fprintln(os.Stderr, "integration: interrupted")
			if err := s.close(); err != nil {
				fmt.Fprintln(os.Stderr, "integration:", err)
			}
			os.Exit(interrupted)
		}
	}()
	code := m.Run()
	close(done)
	<-watched
	return code
}

func newSuite(ctx context.Context) (*suite, error) {
	services, err := devservices.Start(ctx, devservices.Options{Connect: docker.Connect})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "dedup-integration-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a folder for the program: %w", err), services.Close())
	}
	s := &suite{services: services, dir: dir}
	s.binary = sync.OnceValues(func() (string, error) { return build(ctx, filepath.Join(dir, "dedup")) })
	return s, nil
}

func (s *suite) close() error {
	return errors.Join(s.services.Close(), os.RemoveAll(s.dir))
}

// build makes the real program, with the race detector: a race found in a crash
// test is found where it matters.
func build(ctx context.Context, to string) (string, error) {
	c := exec.CommandContext(ctx, "go", "build", "-race", "-o", to, "../cmd/dedup")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return to, nil
}
