package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"dedupledger/internal/app"
)

func newRun(p *program) *cobra.Command {
	var leave int
	c := &cobra.Command{
		Use:   "run",
		Short: "the filter: raw topics in, clean, duplicates and dead-letter out",
		Long: "Filters until SIGTERM or Ctrl-C, then finishes the batch in hand. With http.listen set it serves /healthz,\n" +
			"/readyz (with reasons) and /metrics. It waits for Kafka and PostgreSQL and says so; Redis may be away.\n" +
			"It exits with 1 and a sentence where waiting cannot help: wrong credentials, an old schema, a missing\n" +
			"right on Kafka, another process with the same number as processor.slot.\n\n" +
			"SIGTERM and Ctrl-C are taken for the first half of a restart: the process stays a member of its group, and\n" +
			"when it is started again within kafka.session_timeout it has its partitions back without a rebalance. SIGUSR1\n" +
			"says that the next stop is for good: with it the process leaves the group, and the others take its partitions\n" +
			"at once. `dedup run --leave PID` sends that signal, for containers without a shell.",
		Example: "  dedup run -c /etc/dedup.yaml\n" +
			"  kubectl exec dedup-4 -- /dedup run --leave 1",
		Annotations: map[string]string{heading: underRun, opens: opensAll},
		Args:        arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("leave") {
				return tellToLeave(leave)
			}
			cfg, err := p.load()
			if err != nil {
				return err
			}
			leaving, end := signal.NotifyContext(context.WithoutCancel(c.Context()), syscall.SIGUSR1)
			defer end()
			return app.Run(c.Context(), app.Options{Config: cfg, Version: version, Log: p.logger(cfg), Leaving: leaving.Done()}) //nolint:wrapcheck // a sentence already
		},
	}
	c.Flags().IntVar(&leave, "leave", 0, "tell the filter with this process `id` (1 in a container) that its next stop is for good, and exit")
	return c
}
