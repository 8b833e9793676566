package msgkey_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// moreHeadVectors are vectors of this project's own beside those of the
// specification, for the formats whose keys stand in headers, MIME or JSON.
func moreHeadVectors(t testing.TB) []vector {
	t.Helper()
	return readVectorsOf(t, "testdata/more-head-keys.jsonl")
}

// TestMoreHeadVectors runs them. Between both files each code of these formats
// has a vector of its own.
func TestMoreHeadVectors(t *testing.T) {
	t.Parallel()
	ran, told := map[string]int{}, map[msgkey.Code]bool{}
	for _, v := range moreHeadVectors(t) {
		ran[v.Format]++
		told[v.Code] = true
		v.run(t)
	}
	t.Logf("vectors run: %v", ran)
	for _, v := range readVectors(t) {
		told[v.Code] = true
	}
	for _, c := range msgkey.Codes() {
		if scheme, _, _ := strings.Cut(string(c), "."); slices.Contains(headBorne(), scheme) {
			require.True(t, told[c], "no vector ends with %s", c)
		}
	}
}

// headBorne lists the schemes of the formats of this file.
func headBorne() []string { return []string{"as4", "as2", "oftp2", "sftp", "rest", "json", "ce"} }
