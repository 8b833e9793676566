package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dedupledger/internal/app/config"
)

func newConfig(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "config check|show|flow|env|activate",
		Short: "check | show | flow | env, activate [S]: what is configured",
		Long: "Reads the configuration file and the environment as the other commands do, and opens nothing, but in\n" +
			"activate PostgreSQL. It demands no key but in check and activate: what is missing is shown as missing.",
		Example:     "  dedup config show -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underRun, opens: opensNone},
		Args:        noArguments,
		RunE:        needsCommand,

		DisableFlagsInUseLine: true,
	}
	c.AddCommand(newConfigCheck(p), newConfigShow(p), newConfigFlow(p), newConfigEnv(p), newConfigActivate(p))
	return c
}

// checked is what `dedup config check` found right.
type checked struct {
	File      string   `json:"file,omitempty"`
	Variables []string `json:"variables"` // of the environment that are read
	Rules     int      `json:"rules"`     // the user's own
	Builtin   bool     `json:"builtinRules"`
}

func newConfigCheck(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "ok, or everything that is wrong with file and environment",
		Long: "Checks file and environment as `dedup run` does before it connects. It prints ok, or one line for each\n" +
			"problem on stderr and exits with 2: file, line, key, value, what is allowed. Files named by keys that\n" +
			"end in _file are looked at, too. Nothing is connected to.",
		Example: "  dedup config check -c /etc/dedup.yaml",
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			c, err := p.load()
			if err != nil {
				return err
			}
			if set, err := c.Rules(); err == nil {
				for _, w := range c.Contradictions(set) {
					p.note("warning: %s", w)
				}
			}
			found := checked{File: p.file(), Variables: []string{}, Rules: len(c.Flows), Builtin: c.BuiltinRules}
			for _, k := range config.Keys() {
				if _, set := p.lookup(k.Env); set {
					found.Variables = append(found.Variables, k.Env)
				}
			}
			return p.print(found, found.print)
		},
	}
}

func (c checked) print(w io.Writer) error {
	file := "no file"
	if c.File != "" {
		file = c.File
	}
	variables := "no variables"
	if len(c.Variables) > 0 {
		variables = strings.Join(c.Variables, ", ")
	}
	_, err := fmt.Fprintf(w, "ok: %s; from the environment: %s; rules of your own: %d\n", file, variables, c.Rules)
	return err
}

func newConfigShow(p *program) *cobra.Command {
	defaults := false
	c := &cobra.Command{
		Use:   "show",
		Short: "the configuration that applies, and where each value comes from",
		Long: "Prints the configuration that applies as YAML that can be loaded again. Behind each value stands where\n" +
			"it comes from: default, file and line, or the environment variable. Passwords are left out.",
		Example: "  dedup config show -c /etc/dedup.yaml\n  dedup config show --defaults > dedup.yaml",
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if defaults {
				return p.print(keysOf(config.Keys()), config.WriteDefaults)
			}
			e, err := p.explain()
			if err != nil {
				return err
			}
			return p.print(shownOf(e), e.WriteYAML)
		},
	}
	c.Flags().BoolVar(&defaults, "defaults", false, "read nothing; print every key with its default and its meaning")
	return c
}

// explain is load for commands that only tell.
func (p *program) explain() (*config.Effective, error) {
	e, warnings, err := config.Explain(p.file(), p.environ)
	for _, w := range warnings {
		p.note("warning: %s", w)
	}
	return e, err //nolint:wrapcheck // its lines are complete
}
