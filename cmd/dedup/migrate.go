package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"dedupledger/internal/app"
	"dedupledger/internal/app/config"
	"dedupledger/internal/setting"
	"dedupledger/migrations"
)

// lockRetries is how often a migration that found a table locked is tried again.
const lockRetries = 30

func newMigrate(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:         "migrate up|status|plan",
		Short:       "up | status | plan: the schema of the ledger",
		Long:        "Works on the schema in postgres.url, the only key of the configuration it needs.",
		Example:     "  DEDUP_POSTGRES_URL=postgres://dedup_owner@db/dedup dedup migrate up",
		Annotations: map[string]string{heading: underRun, opens: opensAll},
		Args:        noArguments,
		RunE:        needsCommand,

		DisableFlagsInUseLine: true,
	}
	c.AddCommand(newMigrateUp(p), newMigrateStatus(p), newMigratePlan(p))
	return c
}

// loadPostgres needs no more of the configuration than the database, so that a
// job that migrates does not have to know Kafka and Redis.
func (p *program) loadPostgres() (*config.Config, setting.Secret, error) {
	cfg, err := p.load("postgres.url")
	if err != nil {
		return nil, setting.Secret{}, err
	}
	url, err := cfg.Postgres.ConnString()
	if err != nil {
		return nil, setting.Secret{}, fmt.Errorf("postgres.password_file: %w", err)
	}
	return cfg, url, nil
}

func newMigrateUp(p *program) *cobra.Command {
	lockTimeout := 2 * time.Second
	c := &cobra.Command{
		Use:   "up",
		Short: "apply what is missing, make months ahead, grant rights",
		Long: "Applies what is missing, makes months ahead and grants rights to dedup_app and dedup_read where\n" +
			"these roles exist. Run it as the schema's owner. Several may run at once: one works, the others\n" +
			"wait. Running it again changes nothing.",
		Example: "  DEDUP_POSTGRES_URL=postgres://dedup_owner@db/dedup dedup migrate up",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, url, err := p.loadPostgres()
			if err != nil {
				return err
			}
			err = migrations.Up(c.Context(), url.Reveal(), migrations.Options{
				LockTimeout: lockTimeout, Retries: lockRetries, Logger: p.logger(cfg),
			})
			if err == nil && !p.quiet {
				p.note("the schema is version %d", migrations.Version())
			}
			return app.ExplainPostgres(cfg.Postgres, err) //nolint:wrapcheck // a sentence already
		},
	}
	c.Flags().Var((*durationFlag)(&lockTimeout), "lock-timeout",
		"give up waiting for a table after this `DURATION`, let its users pass, try again")
	return c
}

func newMigrateStatus(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "list the migrations and whether they were applied",
		Example: "  dedup migrate status -c /etc/dedup.yaml -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, url, err := p.loadPostgres()
			if err != nil {
				return err
			}
			states, err := migrations.Status(c.Context(), url.Reveal())
			if err != nil {
				return app.ExplainPostgres(cfg.Postgres, err) //nolint:wrapcheck // a sentence already
			}
			return p.printStates(states)
		},
	}
}

// migration is one line of `dedup migrate status`.
type migration struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
}

func (p *program) printStates(states []migrations.State) error {
	lines := make([]migration, len(states))
	for i, s := range states {
		lines[i] = migration{Version: s.Version, Name: s.Name, Applied: s.Applied}
	}
	return p.print(lines, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, l := range lines {
			state := "missing"
			if l.Applied {
				state = "applied"
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\n", state, l.Name) // Flush has the error
		}
		return t.Flush()
	})
}

func newMigratePlan(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "print the SQL that up would run, with the locks it takes, and run nothing",
		Long: "Prints the SQL that up would run, and runs nothing. Above each statement stands which tables it locks,\n" +
			"how, and who waits meanwhile, and which it scans or rewrites. It is for reading: up also records what\n" +
			"it applied, and a schema made by another way counts as none.",
		Example: "  dedup migrate plan -c /etc/dedup.yaml > plan.sql",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, url, err := p.loadPostgres()
			if err != nil {
				return err
			}
			planned, err := migrations.Plan(c.Context(), url.Reveal())
			if err != nil {
				return app.ExplainPostgres(cfg.Postgres, err) //nolint:wrapcheck // a sentence already
			}
			return p.print(plannedOf(planned), func(w io.Writer) error { return migrations.WritePlan(w, planned) })
		},
	}
}

// plannedStatement is one statement of `dedup migrate plan -o json`.
type plannedStatement struct {
	Migration string            `json:"migration"`
	SQL       string            `json:"sql"`
	Locks     map[string]string `json:"locks"` // mode by table
	Scans     []string          `json:"scans"`
	Rewrites  []string          `json:"rewrites"`
}

func plannedOf(planned []migrations.Planned) []plannedStatement {
	all := []plannedStatement{}
	for _, m := range planned {
		for _, s := range m.Statements {
			one := plannedStatement{m.Name, s.SQL, map[string]string{}, append([]string{}, s.Scans...), append([]string{}, s.Rewrites...)}
			for _, l := range s.Locks {
				one.Locks[l.Table] = l.Mode
			}
			all = append(all, one)
		}
	}
	return all
}

// durationFlag is a flag in the configuration's spelling of durations.
type durationFlag time.Duration

func (d *durationFlag) String() string { return setting.FormatDuration(time.Duration(*d)) }

func (d *durationFlag) Type() string { return "duration" }

func (d *durationFlag) Set(text string) error {
	parsed, err := setting.DurationWithin(text, 10*time.Millisecond, 10*time.Minute)
	if err == nil {
		*d = durationFlag(parsed)
	}
	return err
}
