package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dedupledger/internal/app"
)

func newConfigActivate(p *program) *cobra.Command {
	o := app.ActivateOptions{Say: p.note}
	c := &cobra.Command{
		Use:   "activate",
		Short: "make the rules of this configuration the active ones [S]",
		Long: "The settings of all rules that make keys have one fingerprint, which the ledger keeps. A process with\n" +
			"another one is not ready and does not filter, or the same message would have two keys. This makes the\n" +
			"rules of the configuration the active ones, and prints first how many live keys were made by the old\n" +
			"rules and will not be found by these: a resend of such a message is NEW. Processes with the old rules\n" +
			"stop filtering within seconds. It is kept in dedup_action; a second time changes nothing. Of the\n" +
			"configuration it needs postgres.url and what makes keys.",
		Example: "  dedup config activate --dry-run -c /etc/dedup.yaml\n  dedup config activate --reason 'as4 flow gets invoice keys' -c /etc/dedup.yaml",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if len(o.Reason) > longReason {
				return usage(c, fmt.Errorf("--reason has %d bytes: write at most %d", len(o.Reason), longReason))
			}
			if strings.TrimSpace(o.Reason) == "" {
				o.Reason = "dedup config activate"
			}
			if o.Config, err = p.load("postgres.url"); err != nil {
				return err
			}
			if o.Actor, err = p.actor(); err != nil {
				return err
			}
			done, err := app.Activate(c.Context(), o)
			if err != nil {
				return err //nolint:wrapcheck // a sentence already
			}
			return p.print(done, done.Print)
		},
	}
	c.Flags().StringVar(&o.Reason, "reason", "", "`WHY` it is done; kept in dedup_action")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would be done, change nothing")
	return c
}
