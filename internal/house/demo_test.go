package house

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDemo: what README shows of the demo is what the demo prints, but for
// places, times and counts that differ from run to run. README may leave lines
// out, not change their order.
func TestDemo(t *testing.T) {
	t.Parallel()
	shown := shownDemo(t)
	cmd := exec.CommandContext(t.Context(), buildProgram(t), "demo", "--exit")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	printed := strings.Split(string(out), "\n")
	for _, want := range shown {
		for len(printed) > 0 && shape(printed[0]) != shape(want) {
			printed = printed[1:]
		}
		require.NotEmptyf(t, printed, "README shows this line, and the demo does not print it there: %s\n%s", want, out)
		printed = printed[1:]
	}
}

// shownDemo is the block between the marks in README.
func shownDemo(t *testing.T) []string {
	t.Helper()
	for _, f := range treeFiles(t, "README.md") {
		_, rest, found := strings.Cut(f.text, "<!-- demo -->\n```\n")
		block, _, ended := strings.Cut(rest, "\n```\n<!-- /demo -->")
		if f.path == "README.md" {
			require.True(t, found && ended, "README has no block between <!-- demo --> and <!-- /demo -->")
			return strings.Split(block, "\n")
		}
	}
	return nil
}

var (
	hash   = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	number = regexp.MustCompile(`\d[\d,.:]*`)
	blanks = regexp.MustCompile(` +`)
)

// shape is a line without what differs from run to run.
func shape(line string) string {
	line = number.ReplaceAllString(hash.ReplaceAllString(line, "#"), "0")
	return strings.TrimSpace(blanks.ReplaceAllString(line, " "))
}
