package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dedupledger/internal/app/config"
	"dedupledger/internal/setting"
)

// variable is one line of `dedup config env`.
type variable struct {
	Name     string  `json:"name"`
	Key      string  `json:"key,omitempty"`
	Default  string  `json:"default"` // lists a,b
	Set      bool    `json:"set"`
	Value    *string `json:"value,omitempty"` // of a set one, unless it is secret
	Required bool    `json:"required,omitempty"`
	Later    bool    `json:"later,omitempty"`
}

func newConfigEnv(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "every environment variable, its default, and whether it is set",
		Long: "Lists the environment variable of each key, its default and what it is set to now. The environment\n" +
			"wins over the file. Of a secret only that it is set is shown. The file is not read.",
		Example: "  dedup config env -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			all := []variable{p.variable(config.Key{Env: "DEDUP_CONFIG"})}
			for _, k := range config.Keys() {
				all = append(all, p.variable(k))
			}
			return p.print(all, func(w io.Writer) error { return printVariables(w, all) })
		},
	}
}

func (p *program) variable(k config.Key) variable {
	v := variable{Name: k.Env, Key: k.Path, Default: k.Default.Text, Required: k.Required, Later: k.Later}
	if k.Default.Shape == setting.List {
		v.Default = strings.Join(k.Default.Items, ",") // no map has a default
	}
	value, set := p.lookup(k.Env)
	if v.Set = set; set && !k.Secret {
		v.Value = &value
	}
	return v
}

func printVariables(w io.Writer, all []variable) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "variable\tdefault\tset to") // Flush has the error
	for _, v := range all {
		standard, now := v.Default, ""
		if v.Required {
			standard = "must be set"
		}
		if v.Later {
			standard = strings.TrimSpace(standard + " (later release: no other value)")
		}
		switch {
		case v.Value != nil:
			now = fmt.Sprintf("%q", *v.Value)
		case v.Set:
			now = "*** (not shown)"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", v.Name, standard, now) // likewise
	}
	return t.Flush() //nolint:wrapcheck // wrapped by print
}
