package acl_test

import (
	"os"
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
