package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"dedupledger/migrations"
)

// version is the release; CHANGELOG.md says what is in it. The build may set
// it (-ldflags "-X main.version=..."), which only a variable can take.
var version = "0.1.0"

// build is what `dedup version` tells.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit the program was built from
	Modified bool   `json:"modified,omitempty"` // and changed after it
	Schema   int64  `json:"schema"`             // of the database it works with
	Go       string `json:"go"`
}

func newVersion(p *program) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "which program this is, and the schema it works with",
		Example:     "  dedup version -o json",
		Annotations: map[string]string{heading: underAlso, opens: opensNone},
		Args:        arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return p.print(b, func(w io.Writer) error {
				revision := b.Revision
				if b.Modified {
					revision += " with changes"
				}
				if revision != "" {
					revision += ", "
				}
				_, err := fmt.Fprintf(w, "dedup %s (%sschema %d, %s)\n", b.Version, revision, b.Schema, b.Go)
				return err
			})
		},
	}
}

func thisBuild() build {
	b := build{Version: version, Schema: migrations.Version(), Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
