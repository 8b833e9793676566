package house

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// word is a text that does not belong in the tree.
type word struct {
	why     string
	pattern *regexp.Regexp
}

func words() []word {
	return []word{
		{"a path of one machine", regexp.MustCompile(`(^|[\s"'=:(])/(work|root|home/[a-z]+)/`)},
		{"the host of a package registry; name the tool instead", regexp.MustCompile(`(?i)https?://(proxy|sum|repo1?|registry|deb|files|index)\.[a-z]+\.`)},
		{"work left undone: do it, or say what is missing in words", regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)},
		{"a text that is not in the tree: cite ARCHITECTURE or docs", regexp.MustCompile(`\bDESIGN\b|\b(product|users|style|services|ledger-findings|kafka-transactions)\.md\b|\bmessage-keys §`)},
	}
}

// TestWords reads every text of the tree but this file.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, f := range treeFiles(t, ".go", ".sql", ".md", ".sh", ".yml", ".yaml", "Makefile", ".ci/run") {
		if f.path == "internal/house/words_test.go" {
			continue
		}
		no := 0
		for line := range strings.SplitSeq(f.text, "\n") {
			no++
			for _, w := range words() {
				require.Falsef(t, w.pattern.MatchString(line), "%s:%d: %s: %s", f.path, no, w.why, strings.TrimSpace(line))
			}
		}
	}
}

// TestWordsBite is the negative control.
func TestWordsBite(t *testing.T) {
	t.Parallel()
	for i, bad := range []string{"see /root/x", "https://registry.example.org/x", "// TODO: later", "// as DESIGN §4 has it"} {
		require.Regexp(t, words()[i].pattern, bad)
	}
	for _, w := range words() {
		require.NotRegexp(t, w.pattern, "// ARCHITECTURE §4; docs/message-keys.md; a tree's root/leaf; todo list")
	}
}
