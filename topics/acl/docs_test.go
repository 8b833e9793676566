package acl_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/acl"
)

// The page and the table say the same.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/rights.md")
	require.NoError(t, err)
	raw := acl.Prefix("raw-ingest.")
	outputs := []acl.Name{acl.Prefix("clean."), acl.Named("duplicates"), acl.Named("dead-letter")}
	for who, rights := range map[string]acl.Rights{
		"User:dedup":        acl.Filter([]acl.Name{raw}, outputs, "dedup-ledger"),
		"User:dedup-topics": acl.Ensure(append([]acl.Name{raw}, outputs...)),
	} {
		block := "```sh\n"
		for _, line := range (acl.Principal{Name: who, Bootstrap: "kafka:9092"}).Commands(rights) {
			block += line + "\n"
		}
		require.Contains(t, string(page), block+"```\n")
	}
}

// Each row of a command has the operations of its table, in their order.
func TestDocumentedRows(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/rights.md")
	require.NoError(t, err)
	one := []acl.Name{acl.Named("duplicates")}
	for row, rights := range map[string]acl.Rights{
		"| `dedup topics ensure` | every topic it may make | %s |":                   acl.Ensure(one),
		"| `dedup topics check` | every topic it looks for, missing ones too | %s |": acl.Check(one),
		"| `dedup doctor` | those of the filter; topics `raw-ingest.*` | %s |":       acl.Doctor(one),
		"| `dedup topics tail` | the topics it shows | %s |":                         acl.Tail(one),
	} {
		var operations []string
		for _, r := range rights {
			operations = append(operations, string(r.Operation))
		}
		require.Contains(t, string(page), "\n"+fmt.Sprintf(row, strings.Join(operations, ", ")))
	}
}
