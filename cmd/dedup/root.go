package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Formats of -o.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputLines = "jsonl"
)

// Annotations of a command: the heading it stands under in the help, and what
// it opens.
const (
	heading   = "heading"
	opens     = "opens"
	formats   = "formats" // of -o, where they are others than table and json
	underRun  = "Run it"
	underAsk  = "Ask it"
	underAct  = "Act on it"
	underKeep = "Keep it"
	underAlso = "Also"
	opensAll  = "[S]"
	opensNone = "[L]"
)

// newRoot puts the commands together; their order here is that of the help.
func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:               "dedup [global flags] COMMAND [flags] [arguments]",
		Short:             "one duplicate filter and one ledger for the whole hub",
		Version:           version,
		Args:              noArguments,
		RunE:              needsCommand,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVarP(&p.configFile, "config", "c", "", "configuration `FILE` (DEDUP_CONFIG)")
	flags.StringVarP(&p.output, "output", "o", outputTable, "`FORMAT` of what goes to stdout: table or json; of topics tail: table or jsonl")
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "say nothing but warnings and errors")
	flags.BoolVarP(&p.verbose, "verbose", "v", false, "log at debug level")
	flags.BoolP("help", "h", false, "what a command does, with an example")
	root.Flags().Bool("version", false, "which program this is")
	root.SetVersionTemplate("dedup {{.Version}}\n")
	root.SetFlagErrorFunc(usage)
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if can := formatsOf(c); !slices.Contains(can, p.output) {
			return usage(c, fmt.Errorf("--output %q: write %s", p.output, strings.Join(can, " or ")))
		}
		return nil
	}
	_ = root.RegisterFlagCompletionFunc("output", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return formatsOf(c), cobra.ShellCompDirectiveNoFileComp
	}) // fails for a flag that is not there
	commands := []*cobra.Command{newRun(p), newMigrate(p), newTopics(p), newDoctor(p), newConfig(p), newHealthcheck(p), newKey(p), newSkip(p), newImport(p), newRepair(p), newDemo(p), newCompletion(p), newVersion(p)}
	root.AddCommand(commands...)
	plain := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c == root {
			_ = writeHelp(c.OutOrStdout(), root, commands)
			return
		}
		plain(c, args)
	})
	return root
}

// formatsOf are what -o may be for a command. One whose answer has no end gives a
// line for each record, and no document.
func formatsOf(c *cobra.Command) []string {
	if own := c.Annotations[formats]; own != "" {
		return strings.Fields(own)
	}
	return []string{outputTable, outputJSON}
}

// usage marks an error as one of the call, not of the work.
func usage(c *cobra.Command, err error) error { return &usageError{command: c.CommandPath(), err: err} }

// arguments makes a wrong number of arguments a usage error.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usage(c, err)
		}
		return nil
	}
}

// noArguments is for a command that has only commands below it: what follows
// and is none of them is a slip.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	const slips = 2 // letters that may differ
	c.SuggestionsMinimumDistance = slips
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(c, errors.New(text))
}

// needsCommand answers a call that stops before the command.
func needsCommand(c *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usage(c, errors.New("which command? One of "+strings.Join(names, ", ")))
}

const helpTail = `
[S] opens Kafka, Redis or PostgreSQL itself and needs a configuration, by --config or from the
    environment alone (DEDUP_KAFKA_BROKERS, ...); [L] local, needs neither.
Data goes to stdout, everything else to stderr. Exit: 0 done, 1 failed, 2 wrong usage or configuration.
'dedup COMMAND --help' shows the flags of a command and an example.
`

// aside is what holds for all commands of a heading.
var aside = map[string]string{underAct: "    (each needs --reason; --dry-run shows; recorded; harmless when repeated)"}

// writeHelp lists the commands by what they are for, the global flags, and what
// holds for all.
func writeHelp(w io.Writer, root *cobra.Command, commands []*cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "dedup - %s\n\nUsage: %s\n", root.Short, root.Use)
	for _, group := range []string{underRun, underAsk, underAct, underKeep, underAlso} {
		fmt.Fprintf(&b, "\n%s\n", group+aside[group])
		for _, c := range commands {
			if c.Annotations[heading] == group {
				fmt.Fprintf(&b, "  %-11s %-64s %s\n", c.Name(), c.Short, c.Annotations[opens])
			}
		}
	}
	fmt.Fprintf(&b, "\nGlobal flags\n%s", root.PersistentFlags().FlagUsages())
	fmt.Fprintf(&b, "      --version         which program this is\n%s", helpTail)
	_, err := io.WriteString(w, b.String())
	return err
}
