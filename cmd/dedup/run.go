package main

import (
	"github.com/spf13/cobra"

	"dedupledger/internal/app"
)

func newRun(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "the filter: raw topics in, clean, duplicates and dead-letter out",
		Long: "Filters until SIGTERM or Ctrl-C, then finishes the batch in hand. With http.listen set it serves /healthz,\n" +
			"/readyz (with reasons) and /metrics. It waits for Kafka and PostgreSQL and says so; Redis may be away.\n" +
			"It exits with 1 and a sentence where waiting cannot help: wrong credentials, an old schema, a missing\n" +
			"output topic, another process with the same processor.slot.",
		Example:     "  dedup run -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underRun, opens: opensAll},
		Args:        arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.load()
			if err != nil {
				return err
			}
			return app.Run(c.Context(), app.Options{Config: cfg, Version: version, Log: p.logger(cfg)}) //nolint:wrapcheck // a sentence already
		},
	}
}
