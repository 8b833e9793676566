package rules

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/setting"
)

// told is the explanation as lines "setting value from".
func told(t *testing.T, s *Set, scope, key string) map[string][]string {
	t.Helper()
	explained, known := s.Explain(scope, key)
	require.True(t, known)
	lines := map[string][]string{}
	for _, e := range explained {
		for _, c := range e.Choices {
			value := c.Value
			if c.Shape == setting.List {
				value = fmt.Sprint(c.Items)
			}
			lines[e.Name] = append(lines[e.Name], value+" "+c.At.String())
		}
	}
	return lines
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := newSet(t, true, "match=acme:* key=edifact:40/* window=1d with_date=true", "match=acme:as2 namespace=b2b", "match=beta:* window=9d")
	lines := told(t, s, "acme:as2", "")
	require.Equal(t, []string{fmt.Sprint(Builtin()[5].Extractors.Value) + " built in"}, lines["extractors"])
	require.Equal(t, []string{"b2b dedup.yaml:2"}, lines["namespace"])
	require.Equal(t, []string{"true dedup.yaml:1", "false built in"}, lines["with_date"])
	require.Equal(t, []string{"1d dedup.yaml:1", "7d built in", "30d built in", "60d built in", "60d built in", "90d built in", "30d built in"}, lines["window"])
	require.Len(t, lines, 19, "every setting")

	require.Equal(t, []string{"1d dedup.yaml:1"}, told(t, s, "acme:as2", "edifact:40/1")["window"])
	require.Equal(t, []string{"60d built in"}, told(t, s, "acme:as2", "edifact:41/1")["window"])
	require.Equal(t, []string{"30d built in"}, told(t, s, "acme:as2", "hdr:x")["window"])
	require.Equal(t, []string{"9d dedup.yaml:3"}, told(t, s, "beta:x", "")["window"], "nothing gets past a rule for all keys")
	_, known := newSet(t, false, "match=acme:* window=1d").Explain("beta:as2", "")
	require.False(t, known)
}

// TestExplainIsWhatIsDone: of any rules, scope and key, the explanation is what
// the filter decides.
func TestExplainIsWhatIsDone(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	for range 300 {
		var texts []string
		for i := range rng.IntN(8) {
			text := "match=" + pick("*:*", "a:*", "*:x", "a:x", "b:{x,y}")
			if rng.IntN(2) == 0 {
				text += " key=" + pick("hdr:*", "hdr:1*", "edifact:*", "*")
			} else if rng.IntN(2) == 0 {
				text += " extractors=[" + pick("header", "edifact", "x12") + "]" + pick("", " aliases=[]", " aliases=[sbdh]", " aliases=[as2 as4]")
			}
			text += pick("", fmt.Sprintf(" window=%dd", i+1)) + pick("", " namespace=n"+fmt.Sprint(i)) + pick("", " with_date=true", " with_date=false") + pick("", "", " mode=observe", " mode=enforce") + pick("", "", " payload=none", " payload=full")
			texts = append(texts, text)
		}
		s := newSet(t, rng.IntN(2) == 0, texts...)
		scope, key := pick("a:x", "a:y", "b:x", "c:z"), pick("hdr:1", "hdr:2", "edifact:1/2/3", "x12:1")
		flow, known := s.Flow(scope)
		explained, explains := s.Explain(scope, key)
		require.Equal(t, known, explains)
		if !known {
			continue
		}
		d := flow.Decide(key)
		want := map[string]string{
			"window": setting.FormatDuration(d.Window), "namespace": d.Namespace, "with_date": fmt.Sprint(d.WithDate),
			"extractors": fmt.Sprint(flow.Extractors), "aliases": fmt.Sprint(flow.Aliases), "mode": map[bool]string{false: "enforce", true: "observe"}[d.Observe],
			"payload": map[bool]string{false: "full", true: "none"}[d.NoPayload],
		}
		for _, e := range explained {
			require.Len(t, e.Choices, 1)
			got := e.Choices[0].Value
			if e.Choices[0].Shape == setting.List {
				got = fmt.Sprint(e.Choices[0].Items)
			}
			if w, checked := want[e.Name]; checked {
				require.Equal(t, w, got, "%s of %s %s by %q", e.Name, scope, key, texts)
			}
		}
	}
}

// TestTextsAreRead: what Texts writes, Read takes, and nothing is missing.
func TestTextsAreRead(t *testing.T) {
	t.Parallel()
	for _, r := range append(Builtin(), defaults(), rule(t, 0, "match=a:* key=hdr:* window=90m")) {
		var entries []setting.Entry
		for _, text := range r.Texts() {
			entries = append(entries, setting.Entry{Name: text.Name, Value: setting.Written{
				At: text.At, Shape: text.Shape, Text: text.Value, Items: text.Items,
			}})
		}
		again, problems := Read(r.Path, r.At, entries)
		require.Empty(t, problems)
		require.Equal(t, r, again)
	}
	var names []string
	for _, text := range new(Rule).all() {
		names = append(names, text.Name)
	}
	require.Equal(t, ruleKeys(), names)
}
