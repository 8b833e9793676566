package laws

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// aliased is an observation in which the third copy, with other bytes, is a repeat
// of the first by an alias.
func aliased() *Observation {
	o := lawful()
	first, third := o.Sent[Place{controlRaw, 0, 0}], o.Sent[Place{controlRaw, 0, 2}]
	first.Want.Aliases = []string{"as4:m1"}
	third.Want.Key, third.Want.Aliases = "edifact:other", []string{"as4:m0", "as4:m1"}
	set(o.Outputs[0], "dedup-aliases", "as4:m1")
	set(o.Outputs[2], "dedup-key", "edifact:other")
	set(o.Outputs[2], "dedup-aliases", "as4:m0 as4:m1")
	set(o.Outputs[2], "dedup-matched", "as4:m1")
	set(o.Outputs[2], "dedup-reason", "alias")
	return o
}

func TestCheckerKnowsAliases(t *testing.T) {
	t.Parallel()
	require.NoError(t, aliased().Judge())
	for name, c := range map[string]struct {
		harm func(o *Observation)
		says string
	}{
		"accepted twice by an alias": {func(o *Observation) {
			s := o.Sent[Place{controlRaw, 0, 2}]
			o.Outputs[2] = o.lawfulOutput(s, Clean, "NEW")
			set(o.Outputs[2], "dedup-aliases", strings.Join(s.Want.Aliases, " "))
		}, "law 2"},
		"matched by a key it has not": {func(o *Observation) { set(o.Outputs[2], "dedup-matched", "as4:m7") }, "another scope or key"},
		"matched by a key of its own": {func(o *Observation) { set(o.Outputs[2], "dedup-matched", "as4:m0") }, "another scope or key"},
		"not told by which":           {func(o *Observation) { set(o.Outputs[2], "dedup-matched", "") }, "another scope or key"},
		"aliases not told in clean":   {func(o *Observation) { set(o.Outputs[0], "dedup-aliases", "") }, "dedup-aliases"},
		"aliases of another told":     {func(o *Observation) { set(o.Outputs[2], "dedup-aliases", "as4:m0") }, "dedup-aliases"},
		"headers above their bound":   {func(o *Observation) { set(o.Outputs[2], "dedup-first-id", strings.Repeat("x", 1280)) }, "ours take"},
		"the only copy by an alias is gone": {func(o *Observation) {
			o.Sent[Place{controlRaw, 0, 0}].Want.Aliases = nil
		}, "law 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := aliased()
			c.harm(o)
			require.ErrorContains(t, o.Judge(), c.says)
		})
	}
}
