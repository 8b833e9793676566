package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"dedupledger/internal/app"
	"dedupledger/internal/importer"
	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
)

func newImport(p *program) *cobra.Command {
	var o importer.Order
	window := ""
	c := &cobra.Command{
		Use:   "import [flags] FILE|-",
		Short: "register what other systems already know",
		Long: "Enters what another system has accepted before, so that its copies are duplicates: CSV whose first line\n" +
			"names the columns scope,key,sha256,first_seen and, if there is one, window, in any order, or JSON lines\n" +
			"with these members. scope is TENANT:FLOW, key as `dedup key` prints it (any other becomes hdr:...),\n" +
			"sha256 that of the payload in 64 hex digits, first_seen a time by RFC 3339 or a date, window a\n" +
			"duration: the line's own, else --window, else what the rules say; it counts from first_seen. Lines\n" +
			"whose window is over, or that lie in the future, are counted and left out; so is what the ledger knows.\n" +
			"A line that cannot be read is named, the others go on, and the exit code is 1. Given again, a file\n" +
			"changes nothing. The filter may run meanwhile. Of the configuration it needs postgres.url,\n" +
			"flows and what else makes keys: with other rules than the active ones it is refused, as the filter is.",
		Example: "  dedup import --dry-run legacy-as2.csv -c /etc/dedup.yaml\n" +
			"  gzip -dc cache.jsonl.gz | dedup import - --window 90d --reason 'cache of the old AS4 gateway' -c /etc/dedup.yaml",
		Annotations: map[string]string{heading: underKeep, opens: opensAll},
		Args:        arguments(oneFile),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkReason(c, o.Reason, o.DryRun); err != nil {
				return err
			}
			if err := readWindow(c, window, rules.MaxWindow, &o.Window); err != nil {
				return err
			}
			return p.importFile(c, args[0], window, &o)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&window, "window", "", "`D` of lines that have none, 1s to 400d, as in 30d")
	c.Flags().StringVar(&o.Reason, "reason", "", "`WHY` it is done; kept in dedup_action")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "count what would be done, change nothing")
	return c
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d files: name one FILE, or - for stdin", len(args))
	}
	return nil
}

func readWindow(c *cobra.Command, text string, longest time.Duration, into *time.Duration) error {
	if !c.Flags().Changed("window") {
		return nil
	}
	w, err := setting.DurationWithin(text, rules.MinWindow, longest)
	switch {
	case err != nil:
		return usage(c, fmt.Errorf("--window %q: %w", text, err))
	case w%time.Second != 0:
		return usage(c, fmt.Errorf("--window %q: write whole seconds", text))
	}
	*into = w
	return nil
}

func (p *program) importFile(c *cobra.Command, name, window string, o *importer.Order) error {
	cfg, err := p.load("postgres.url")
	if err != nil {
		return err
	}
	if err := readWindow(c, window, app.LongestImported(cfg), &o.Window); err != nil {
		return fmt.Errorf("%w, as long as months.keep keeps them", err)
	}
	if o.Actor, err = p.actor(); err != nil {
		return err
	}
	end, err := p.input(name, o)
	if err != nil {
		return err
	}
	defer end()
	o.Say = p.note
	if p.quiet {
		o.Say = func(string, ...any) {}
	}
	o.Bad = func(problem setting.Problem) { p.note("%s", problem.Error()) }
	report, failed := app.Import(c.Context(), cfg, o, p.logger(cfg))
	if report != nil {
		if err := p.print(report, report.Print); err != nil {
			return errors.Join(failed, err)
		}
	}
	if failed != nil {
		return failed //nolint:wrapcheck // a sentence already
	}
	if report.Bad > 0 {
		return fmt.Errorf("%d of %d lines are bad: mend them and import the file again; what is entered is known then", report.Bad, report.Lines)
	}
	return nil
}

// input opens a file, or takes stdin for "-".
func (p *program) input(name string, o *importer.Order) (end func(), err error) {
	if name == "-" {
		o.Name, o.In = "stdin", p.stdin
		return func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening the file: %w", err)
	}
	o.Name, o.In = filepath.Base(name), f
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		o.Size = info.Size()
	}
	return func() { _ = f.Close() }, nil // it was read only
}
