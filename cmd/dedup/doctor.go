package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dedupledger/internal/app"
	"dedupledger/internal/doctor"
)

func newDoctor(p *program) *cobra.Command {
	var acls, drained, deep bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "look at everything, print each fault and its repair",
		Long: "Looks at Kafka (and tries a transaction on a clean topic, which it aborts), topics, rights, PostgreSQL,\n" +
			"Redis, clocks, the consumer group, the position of each raw partition, the backlog, months and\n" +
			"disagreements, and prints a line each: ok, warn or FAIL, with the repair. Exit 1 where anything fails.\n" +
			"It changes nothing, and may run beside the filter, as the filter's users.",
		Example: "  dedup doctor -c /etc/dedup.yaml\n" +
			"  dedup doctor --acls -c /etc/dedup.yaml       # the kafka-acls.sh lines that are missing, and nothing else\n" +
			"  dedup doctor --drained -c /etc/dedup.yaml    # exit 0: every raw partition is filtered to its end",
		Annotations: map[string]string{heading: underRun, opens: opensAll},
		Args:        arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if acls && drained || acls && deep || drained && deep {
				return usage(c, errors.New("--acls, --drained and --deep are asked one at a time"))
			}
			cfg, err := p.load()
			if err != nil {
				return err
			}
			if acls {
				lines, err := app.MissingRights(c.Context(), cfg)
				if err != nil {
					return err //nolint:wrapcheck // a sentence already
				}
				return p.printRights(lines)
			}
			say := p.note
			if p.quiet {
				say = func(string, ...any) {}
			}
			found, err := app.Doctor(c.Context(), app.DoctorOptions{Config: cfg, Drained: drained, Deep: deep, Say: say})
			if err != nil {
				return err //nolint:wrapcheck // likewise
			}
			return p.printFindings(found)
		},
	}
	c.Flags().BoolVar(&acls, "acls", false, "print the kafka-acls.sh lines of the filter's rights that are missing, and look at nothing else")
	c.Flags().BoolVar(&drained, "drained", false, "only: is every raw partition filtered to its end, and none held")
	c.Flags().BoolVar(&deep, "deep", false, "read every row of all months, too: keys that were accepted twice within a window")
	return c
}

// diagnosis is the report for machines.
type diagnosis struct {
	Findings doctor.Findings `json:"findings"`
	Failures int             `json:"failures"`
	Warnings int             `json:"warnings"`
}

func (p *program) printFindings(found doctor.Findings) error {
	d := diagnosis{append(doctor.Findings{}, found...), found.Count(doctor.Fail), found.Count(doctor.Warn)}
	if err := p.print(d, found.Print); err != nil {
		return err
	}
	if d.Failures > 0 {
		return errors.New(found.Summary() + "; each repair is printed with its fault")
	}
	return nil
}

// printRights prints lines that a shell can run.
func (p *program) printRights(lines []string) error {
	err := p.print(append([]string{}, lines...), func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(append(lines, ""), "\n"))
		return err //nolint:wrapcheck // the caller wraps it
	})
	if err != nil {
		return err
	}
	if n := len(lines); n > 0 {
		return fmt.Errorf("rights on Kafka are missing; %d lines grant them, as an administrator", n)
	}
	return nil
}
