// Command dedup is the duplicate filter and its tools; `dedup --help` lists
// them. Data goes to stdout, everything else to stderr. It exits with 0 (done),
// 1 (failed) or 2 (wrong usage or configuration).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

// run is the only place where signals are known: they end the context, and a
// second one ends the process as if nobody listened.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return execute(ctx, &program{
		args: os.Args[1:], environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	})
}
