package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGlobMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"edifact:*", "edifact:4098765000014:14/x/1", true},
		{"edifact:*", "edifact:", true},
		{"edifact:*", "edifac:x", false},
		{"{ubl,cii}:*", "cii:inv/vat:DE1/7/2026-11-01", true},
		{"{ubl,cii}:*", "as2:x", false},
		{"x12:{01,ZZ}:{A,B}/*", "x12:ZZ:B/ZZ:C/000000001", true},
		{"x12:{01,ZZ}:{A,B}/*", "x12:02:B/ZZ:C/000000001", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"*T", "edifact:a/b/1/T", true},
		{"*T", "edifact:a/b/1/I", false},
		{"*a*b*", "xxaxxbxx", true},
		{"*a*b", "xbxa", false},
		{"*ab?d", "abxdabcd", true},
		{"**", "", true},
		{"hdr:a,b", "hdr:a,b", true},
		{"{a,}b", "b", true},
	} {
		g, err := compileGlob(c.pattern, keyOctets)
		require.NoError(t, err, c.pattern)
		require.Equal(t, c.want, g.match(c.text), "%s on %s", c.pattern, c.text)
	}
}

func TestGlobRefuses(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"":                          "empty glob",
		"[ab]*":                     `'[' can never match; allowed are letters, digits, -._@+=,%:/~ and the globs * ? {a,b}`,
		"a b":                       `' ' can never match; allowed are letters, digits, -._@+=,%:/~ and the globs * ? {a,b}`,
		"{a,{b,c}}":                 "braces do not pair, or nest; write {a,b}",
		"{a":                        "braces do not pair, or nest; write {a,b}",
		"a}":                        "braces do not pair, or nest; write {a,b}",
		strings.Repeat("{a,b}", 7):  "more than 64 alternatives; write several rules",
		strings.Repeat("{a,b}", 40): "more than 64 alternatives; write several rules",
	} {
		_, err := compileGlob(pattern, keyOctets)
		require.EqualError(t, err, want, pattern)
	}
}

// FuzzGlob holds the matcher against the plain recursive definition.
func FuzzGlob(f *testing.F) {
	f.Add("a*b?c{d,e*}", "axxbycd")
	f.Add("*{a,}*?b", "aab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 24 || len(text) > 24 {
			return
		}
		g, err := compileGlob(pattern, keyOctets)
		if err != nil {
			return
		}
		want := false
		for _, a := range g {
			want = want || slow(a.prefix+a.rest, text)
		}
		require.Equal(t, want, g.match(text))
	})
}

func slow(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return slow(pattern[1:], text) || text != "" && slow(pattern, text[1:])
	case text == "":
		return false
	default:
		return (pattern[0] == '?' || pattern[0] == text[0]) && slow(pattern[1:], text[1:])
	}
}
