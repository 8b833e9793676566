package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompletion: a script for each shell; bash reads its own, and with it
// completes commands as the program answers them.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, mark := range map[string]string{"bash": "complete -o default", "zsh": "#compdef dedup", "fish": "complete -c dedup"} {
		o := call{}.run(t, "completion", shell)
		require.Equal(t, exitDone, o.code, o.stderr)
		require.Empty(t, o.stderr)
		require.Contains(t, o.stdout, mark)
		require.Contains(t, o.stdout, "dedup")
	}
	bash := exec.CommandContext(t.Context(), "bash", "-n")
	bash.Stdin = strings.NewReader(call{}.run(t, "completion", "bash").stdout)
	out, err := bash.CombinedOutput()
	require.NoError(t, err, string(out))
	bash = exec.CommandContext(t.Context(), "bash", "-n")
	bash.Stdin = strings.NewReader("if true; then")
	require.Error(t, bash.Run(), "bash -n finds a fault where there is one")
}

// TestCompletes asks as the scripts do.
func TestCompletes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"migr":         {"migrate\t"},
		"migrate ":     {"up\t", "status\t", "plan\t"},
		"completion ":  {"bash", "zsh", "fish"},
		"run --confi":  {"--config\t"},
		"version -o ":  {"table", "json"},
		"version -o j": {"json"},
	} {
		words := strings.Split(line, " ")
		o := call{}.run(t, append([]string{"__complete"}, words...)...)
		require.Equal(t, exitDone, o.code, o.stderr)
		for _, w := range want {
			require.Contains(t, "\n"+o.stdout, "\n"+w, line)
		}
	}
}
