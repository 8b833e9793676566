package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func newCompletion(*program) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "a script that completes commands and flags in your shell",
		Long: "Prints a script for the shell, to be read by it at its start. Bash needs its package\n" +
			"bash-completion.",
		Example: "  dedup completion bash > /etc/bash_completion.d/dedup\n" +
			"  dedup completion zsh > \"${fpath[1]}/_dedup\"\n" +
			"  dedup completion fish > ~/.config/fish/completions/dedup.fish",
		Annotations: map[string]string{heading: underAlso, opens: opensNone},
		ValidArgs:   []string{"bash", "zsh", "fish"},
		Args:        arguments(oneShell),
		RunE: func(c *cobra.Command, args []string) error {
			if err := script(c.Root(), args[0], c.OutOrStdout()); err != nil {
				return fmt.Errorf("writing the script: %w", err)
			}
			return nil
		},

		DisableFlagsInUseLine: true,
	}
}

func oneShell(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d shells: name one of bash, zsh, fish", len(args))
	}
	if err := cobra.OnlyValidArgs(c, args); err != nil {
		return fmt.Errorf("%q: write bash, zsh or fish", args[0])
	}
	return nil
}

func script(root *cobra.Command, shell string, w io.Writer) error {
	switch shell {
	case "zsh":
		return root.GenZshCompletion(w) //nolint:wrapcheck // wrapped by the caller
	case "fish":
		return root.GenFishCompletion(w, true) //nolint:wrapcheck // likewise
	default:
		return root.GenBashCompletionV2(w, true) //nolint:wrapcheck // likewise
	}
}
