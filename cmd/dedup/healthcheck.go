package main

import (
	"github.com/spf13/cobra"

	"dedupledger/internal/app"
)

func newHealthcheck(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck",
		Short: "ask the filter beside it whether it is ready",
		Long: "Asks /readyz of the filter that runs here with the same configuration, and exits with 0 when it is ready,\n" +
			"with 1 and the reasons when not. It is the health check of a container, whose image has no shell.",
		Example:     "  dedup healthcheck -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underRun, opens: opensAll},
		Args:        arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.load()
			if err != nil {
				return err
			}
			return app.AskReady(c.Context(), cfg) //nolint:wrapcheck // a sentence already
		},
	}
}
