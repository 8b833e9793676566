package topics_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics"
)

// scopeGrammar is ARCHITECTURE §3's sentence as a pattern; the parser uses none.
var scopeGrammar = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,40}:[A-Za-z0-9._-]{1,40}\z`)

func TestParseScope(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40)
	s, err := topics.ParseScope("tenant42:as4")
	require.NoError(t, err)
	require.Equal(t, topics.Scope{Tenant: "tenant42", Flow: "as4"}, s)
	require.Equal(t, "tenant42:as4", s.String())

	for _, good := range []string{"a:b", "A.b_c-1:0", long + ":" + long} {
		s, err := topics.ParseScope(good)
		require.NoError(t, err, good)
		require.Equal(t, good, s.String())
	}
	for _, bad := range []string{
		"", ":", "a", "a:", ":b", "a:b:c", "a::b", "a b:c", "a:b\n", "a:b\x00", "ä:b", "a:*", "?:?",
		long + "a:b", "a:" + long + "b", "\xff:b",
	} {
		_, err := topics.ParseScope(bad)
		require.ErrorIs(t, err, topics.ErrScope, "%q", bad)
	}
}

func FuzzParseScope(f *testing.F) {
	for _, seed := range []string{"a:b", "", "a:b:c", strings.Repeat("x", 40) + ":y", "a:b\n", "\xff:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := topics.ParseScope(text)
		require.Equal(t, scopeGrammar.MatchString(text), err == nil, "%q", text)
		if err == nil {
			require.Equal(t, text, s.String())
		}
	})
}
