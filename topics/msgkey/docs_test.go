package msgkey_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// TestDocumentNamesEveryCode keeps the page that readers of dead letters look
// codes up in complete.
func TestDocumentNamesEveryCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/message-keys.md")
	require.NoError(t, err)
	for _, c := range msgkey.Codes() {
		require.Contains(t, string(page), "`"+string(c)+"`")
	}
	names := slices.Concat(msgkey.Names(), msgkey.ModeNames(), msgkey.HeaderNames(), []string{"edi-ignore-time", "c14n-ws", "jcs"})
	for _, name := range names {
		require.Contains(t, string(page), "`"+name+"`")
	}
}
