package rules

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/setting"
)

// TestNoPointersForJSON: an empty list of pointers never decides for the extractor
// json, or its flow would have no chain and give key.not_found to all records.
func TestNoPointersForJSON(t *testing.T) {
	t.Parallel()
	const chain = "extractors=[json header] json_pointers=[/order/id]"
	const extractors = `dedup.yaml:1: flows[0].json_pointers: []: leaves json in extractors of flows[1] (dedup.yaml:2) without pointers; ` +
		`write at least one, as [/order/id], or give this rule extractors without json`
	for name, c := range map[string]struct {
		refused string
		rules   []string
	}{
		"before":              {extractors, []string{"match=acme:* json_pointers=[]", "match=*:* " + chain}},
		"of one match":        {extractors, []string{"match=acme:* json_pointers=[]", "match=acme:* " + chain}},
		"wider":               {extractors, []string{"match=*:* json_pointers=[]", "match=acme:rest " + chain}},
		"where both match":    {extractors, []string{"match=acme:* json_pointers=[]", "match=*:rest " + chain}},
		"in braces":           {extractors, []string{"match={beta,acme}:re?t json_pointers=[]", "match=acme:{as2,rest} " + chain}},
		"its own other lists": {extractors, []string{"match=acme:* json_pointers=[] aliases=[as2] sellers=[ep]", "match=*:* " + chain}},
		"for aliases": {
			strings.ReplaceAll(extractors, "extractors", "aliases"),
			[]string{"match=acme:* json_pointers=[] extractors=[header]", "match=*:* aliases=[json] json_pointers=[/id]"},
		},
		"behind rules of others": {
			strings.ReplaceAll(strings.ReplaceAll(extractors, "flows[1]", "flows[3]"), "yaml:2", "yaml:4"),
			[]string{"match=acme:* json_pointers=[]", "match=beta:* extractors=[header]", "match=acme:as2 extractors=[as2]", "match=*:* " + chain},
		},

		"other tenants":                {"", []string{"match=acme:* json_pointers=[]", "match=beta:* " + chain}},
		"other flows":                  {"", []string{"match=*:as2 json_pointers=[]", "match=*:rest " + chain}},
		"behind":                       {"", []string{"match=*:* " + chain, "match=acme:* json_pointers=[]"}},
		"beside a chain of its own":    {"", []string{"match=acme:* json_pointers=[] extractors=[header auto]", "match=*:* " + chain}},
		"behind the flow's chain":      {"", []string{"match=acme:* extractors=[header auto]", "match=acme:* json_pointers=[]", "match=*:* " + chain}},
		"before the flow's chain":      {"", []string{"match=acme:* json_pointers=[]", "match=acme:* extractors=[auto]", "match=*:* " + chain}},
		"behind the flow's pointers":   {"", []string{"match=acme:* json_pointers=[/id]", "match=acme:* json_pointers=[]", "match=*:* " + chain}},
		"keeps auto from reading JSON": {"", []string{"match=acme:* json_pointers=[]", "match=*:* json_pointers=[/id]"}},
	} {
		var own []Rule
		for i, text := range c.rules {
			own = append(own, rule(t, i, text))
		}
		s, err := New(own, true)
		if c.refused != "" {
			require.EqualError(t, err, c.refused, name)
			continue
		}
		require.NoError(t, err, name)
		again, err := s.Making().Rules()
		require.NoError(t, err, "as the ledger keeps them")
		require.Equal(t, s.Making().Fingerprint(), again.Making()[:len(s.Making())].Fingerprint())
	}
	_, problems := readRule(0, "match=*:* extractors=[json] json_pointers=")
	require.EqualError(t, problems, `dedup.yaml:1: flows[0].json_pointers: "": write a list: [a, b]`)
	_, err := New([]Rule{{Match: builtin("*:*"), JSONPointers: builtin([]string{""})}}, false)
	require.ErrorContains(t, err, `json_pointers: "": write an RFC 6901 pointer`)
}

// TestEveryChainIsWhole: whatever rules are taken, no flow is left without the chain
// that they name.
func TestEveryChainIsWhole(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	refused, taken := 0, 0
	for range 1000 {
		var own []Rule
		var texts []string
		for i := range 1 + rnd.IntN(4) {
			text := "match=" + pick("a:*", "b:*", "*:x", "*:?", "a:{x,yy}", "a*:*y", "*:*") +
				pick("", " json_pointers=[]", " json_pointers=[]", " extractors=[json] json_pointers=[/i]", " aliases=[json] json_pointers=[/i]",
					" extractors=[auto]", " aliases=[]", " json_pointers=[/i]", " extractors=[as2] aliases=[as2] json_pointers=[]")
			own, texts = append(own, rule(t, i, text)), append(texts, text)
		}
		s, err := New(own, rnd.IntN(2) == 0)
		if err != nil {
			require.ErrorAs(t, err, new(setting.Problems))
			refused++
			continue
		}
		taken++
		for _, scope := range []string{"a:x", "a:y", "a:yy", "ab:xy", "b:x", "b:yy", "c:x", "c:z"} {
			f, known := s.Flow(scope)
			if !known {
				continue
			}
			_, err = f.with.NewChain(append(append([]string{}, f.Extractors...), f.Aliases...)...)
			require.NoError(t, err, "%s\n%s", scope, strings.Join(texts, "\n"))
		}
	}
	require.Positive(t, refused)
	require.Positive(t, taken)
	t.Logf("%d refused, %d taken", refused, taken)
}
