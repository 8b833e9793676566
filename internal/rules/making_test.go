package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFingerprintIsOfWhatMakesKeys: every setting that makes keys, its rule's globs
// and the rules' order are in it; nothing else is, and no line number.
func TestFingerprintIsOfWhatMakesKeys(t *testing.T) {
	t.Parallel()
	base := newSet(t, true, "match=acme:* extractors=[header edifact]", "match=acme:* key=edifact:40/* with_date=true").Making()
	for name, c := range map[string]struct {
		texts []string
		same  bool
	}{
		"lines moved":        {[]string{"match=x:y window=3d", "match=acme:* extractors=[header edifact]", "match=acme:* key=edifact:40/* with_date=true window=1d mode=observe payload=none"}, true},
		"extractors":         {[]string{"match=acme:* extractors=[header x12]", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"order of the chain": {[]string{"match=acme:* extractors=[edifact header]", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"with_date":          {[]string{"match=acme:* extractors=[header edifact]", "match=acme:* key=edifact:40/* with_date=false"}, false},
		"match":              {[]string{"match=acme:x extractors=[header edifact]", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"key":                {[]string{"match=acme:* extractors=[header edifact]", "match=acme:* key=edifact:41/* with_date=true"}, false},
		"order of the rules": {[]string{"match=acme:* key=edifact:40/* with_date=true", "match=acme:* extractors=[header edifact]"}, false},
		"aliases":            {[]string{"match=acme:* extractors=[header edifact] aliases=[sbdh]", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"no aliases":         {[]string{"match=acme:* extractors=[header edifact] aliases=[]", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"namespace":          {[]string{"match=acme:* extractors=[header edifact] namespace=n", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"lenient":            {[]string{"match=acme:* extractors=[header edifact] lenient=true", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"sellers":            {[]string{"match=acme:* extractors=[header edifact] sellers=[ep]", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"scheme":             {[]string{"match=acme:* extractors=[header edifact] scheme=inv", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"cxml_order":         {[]string{"match=acme:* extractors=[header edifact] cxml_order=true", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"message_level":      {[]string{"match=acme:* extractors=[header edifact] message_level=message", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"json_pointers":      {[]string{"match=acme:* extractors=[header edifact] json_pointers=[/a]", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"file_pattern":       {[]string{"match=acme:* extractors=[header edifact] file_pattern=(a)", "match=acme:* key=edifact:40/* with_date=true"}, false},
		"oftp1":              {[]string{"match=acme:* extractors=[header edifact] oftp1=true", "match=acme:* key=edifact:40/* with_date=true"}, false},
	} {
		m := newSet(t, true, c.texts...).Making()
		require.Equal(t, c.same, m.Fingerprint() == base.Fingerprint(), name)
		require.Equal(t, c.same, len(m.Differences(base)) == 0, name)
		require.Equal(t, c.same, len(base.Differences(m)) == 0, name)
	}
	outside := Made{Path: "topics.header_names", At: "dedup.yaml:3", Set: map[string][]string{"dedup-key": {"X-Id"}}}
	require.NotEqual(t, base.Fingerprint(), newSet(t, true, "match=acme:* extractors=[header edifact]", "match=acme:* key=edifact:40/* with_date=true").Making(outside).Fingerprint())
	require.NotEqual(t, base.Fingerprint(), newSet(t, false, "match=acme:* extractors=[header edifact]", "match=acme:* key=edifact:40/* with_date=true").Making().Fingerprint())
	require.Regexp(t, "^[0-9a-f]{16}$", base.Fingerprint())
	// A setting of which nobody has thought whether it makes keys.
	others := strings.Fields("match key mode entry hash window ttl_max durability payload")
	require.ElementsMatch(t, ruleKeys(), append(others, makesKeys()...))
}

func TestDifferencesNameFlowAndLine(t *testing.T) {
	t.Parallel()
	active := newSet(t, true, "match=acme:* extractors=[header edifact] aliases=[as4]", "match=beta:* namespace=b2b", "match=old:* lenient=true").Making()
	ours := newSet(t, true, "match=acme:* extractors=[header x12] with_date=true", "match=new:* namespace=n window=1d", "match=beta:* namespace=b2b").Making()
	require.Equal(t, []string{
		"flows[0] acme:* (dedup.yaml:1): extractors is header, x12 here and header, edifact in the active rules (dedup.yaml:1)",
		"flows[0] acme:* (dedup.yaml:1): with_date is true here and not set in the active rules (dedup.yaml:1)",
		"flows[0] acme:* (dedup.yaml:1): aliases is not set here and as4 in the active rules (dedup.yaml:1)",
		"flows[1] new:* (dedup.yaml:2): namespace n is not among the active rules",
		"the active rules also have flows[2] old:* (dedup.yaml:3): lenient true",
	}, ours.Differences(active))
	var many []string
	for range 9 {
		many = append(many, "match=x:y oftp1=true")
	}
	told := newSet(t, true, many...).Making().Differences(active)
	require.Len(t, told, 6)
	require.Equal(t, "and 7 more", told[5])
}

// TestMakingIsKept: what the ledger keeps says the same when it is read, and makes
// the same rules.
func TestMakingIsKept(t *testing.T) {
	t.Parallel()
	s := newSet(t, true, "match=acme:* extractors=[header edifact] aliases=[as2] lenient=true json_pointers=[/a /b]", "match=acme:* key=edifact:40/* with_date=true namespace=")
	text, err := json.Marshal(s.Making())
	require.NoError(t, err)
	m, err := ParseMaking(text)
	require.NoError(t, err)
	require.Equal(t, s.Making(), m)
	again, err := m.Rules()
	require.NoError(t, err)
	for _, scope := range []string{"acme:as2", "beta:as2", "beta:x"} {
		f, _ := s.Flow(scope)
		g, _ := again.Flow(scope)
		require.Equal(t, f.Extractors, g.Extractors)
		require.True(t, slices.Equal(f.Aliases, g.Aliases))
		require.Equal(t, f.Decide("edifact:40/1").WithDate, g.Decide("edifact:40/1").WithDate)
	}
	_, err = ParseMaking([]byte("{"))
	require.Error(t, err)
}
