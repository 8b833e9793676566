package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0a", 32)
	head := strings.Repeat("k", 110)
	tests := map[string]bool{
		"edifact:a:14/b/1":                true,
		"x12:ZZ:A/01:B/000000001/T":       true,
		"hdr:%00%FF":                      true,
		"as4:/x":                          true,
		"ce:" + strings.Repeat("a", 197):  true,
		"ce:" + strings.Repeat("a", 198):  false, // 201 characters
		"hdr:" + head + "~" + sum:         true,
		"hdr:short~" + sum:                true,
		"hdr:" + head[:109] + "%~" + sum:  true, // a cut escape, only at the cut
		"hdr:" + head[:108] + "%C~" + sum: true,
		"hdr:" + head[:108] + "%c~" + sum: false,
		"hdr:" + head[:107] + "%~" + sum:  false,
		"hdr:" + head + "k~" + sum:        false,
		"hdr:" + head + "~" + sum[1:]:     false,
		"hdr:" + head + "~" + sum + "0":   false,
		"hdr:" + head + "~0A" + sum[2:]:   false,
		"hdr:a~b~" + sum:                  false,
		"op:release/x/0/5":                false,
		"EDIFACT:a/b/1":                   false,
		"invoice:1":                       false,
		"edifact":                         false,
		"edifact:":                        false,
		":a":                              false,
		"hdr:%2":                          false,
		"hdr:%":                           false,
		"hdr:%2f":                         false,
		"hdr:a b":                         false,
		"hdr:a\n":                         false,
		"":                                false,
	}
	for value, want := range tests {
		require.Equal(t, want, msgkey.Canonical([]byte(value)), "%q", value)
	}
}

// TestEverySchemeIsCanonical covers formats without an extractor too.
func TestEverySchemeIsCanonical(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{
		"edifact", "x12", "ubl", "cii", "inv", "sbdh", "as4", "as2", "oftp2", "sftp", "rest", "json", "ce", "cxml", "hdr",
	} {
		require.True(t, msgkey.Canonical([]byte(scheme+":a/b")), scheme)
	}
}
