package msgkey_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// TestMoreVectors runs this project's own vectors for the formats whose keys
// stand in the payload. Between all files each code of these formats has a
// vector of its own, and each code that auto alone gives.
func TestMoreVectors(t *testing.T) {
	t.Parallel()
	ran, told := map[string]int{}, map[msgkey.Code]bool{}
	for _, v := range readVectorsOf(t, "testdata/more-keys.jsonl") {
		ran[v.Format]++
		told[v.Code] = true
		v.run(t)
	}
	require.Equal(t, map[string]int{"ubl": 48, "cii": 15, "sbdh": 9, "cxml": 12, "edifact": 17, "x12": 21, "auto": 4}, ran)
	for _, v := range readVectors(t) {
		told[v.Code] = true
	}
	for _, c := range msgkey.Codes() {
		if scheme, _, _ := strings.Cut(string(c), "."); !slices.Contains(headBorne(), scheme) {
			require.True(t, told[c], "no vector ends with %s", c)
		}
	}
	require.True(t, told[msgkey.EmptyPayload])
}
