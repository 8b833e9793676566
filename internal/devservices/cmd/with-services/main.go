// Command with-services starts one set of real services, runs a command that
// finds them in its environment (DEDUP_TEST_KAFKA, DEDUP_TEST_REDIS,
// DEDUP_TEST_POSTGRES), and ends them:
//
//	go run ./internal/devservices/cmd/with-services -- go test ./...
//
// It exits as the command does; 2 is wrong usage, 1 also services that cannot
// be had.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/docker"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: with-services [--] COMMAND [ARGUMENT...]")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := with(ctx, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-services:", err)
		return max(code, 1)
	}
	return code
}

func with(ctx context.Context, args []string) (code int, err error) {
	s, err := devservices.Start(ctx, devservices.Options{
		Connect:  docker.Connect,
		Progress: func(what string) { fmt.Fprintln(os.Stderr, "with-services:", what) },
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Fprintln(os.Stderr, s.Describe())

	c := exec.CommandContext(ctx, args[0], args[1:]...)
	// An interrupt from the terminal reaches the command too; one sent to us
	// alone is handed on. Either way it is waited for.
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), s.Environ()...)
	err = c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}
