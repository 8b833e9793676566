package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// foreignSentences are PostgreSQL's, Kafka's and the kernel's.
func foreignSentences() []string {
	return []string{`database "dedupp" does not exist`, "address already in use", "INVALID_TRANSACTION_TIMEOUT"}
}

// TestStartErrors: each sentence that docs/deploy.md explains is one that the
// program says.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/deploy.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n## When it does not start\n")
	require.True(t, found)
	var source strings.Builder
	for _, f := range treeFiles(t, ".go") {
		if !strings.HasSuffix(f.path, "_test.go") {
			source.WriteString(f.text)
		}
	}
	rows := regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(table, -1)
	require.Greater(t, len(rows), 20)
	for _, row := range rows {
		for _, sentence := range inTicks.FindAllStringSubmatch(row[1], -1) {
			if !slices.Contains(foreignSentences(), sentence[1]) && !says(source.String(), sentence[1]) {
				t.Errorf("docs/deploy.md explains %q, which the program does not say", sentence[1])
			}
		}
	}
	require.False(t, says(source.String(), "the ledger is on holiday"))
}

// says looks for a sentence in Go's strings; numbers and quoted values in it
// stand for what is put in.
func says(source, sentence string) bool {
	pattern := regexp.QuoteMeta(sentence)
	pattern = regexp.MustCompile(`\b\d+\b`).ReplaceAllString(pattern, `%[dqv]`)
	pattern = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(pattern, `(?:%q|\\?"[^"]*")`)
	pattern = strings.Replace(pattern, "waiting for ", `waiting for "\+what|waiting for `, 1)
	return regexp.MustCompile(pattern).MatchString(source)
}
