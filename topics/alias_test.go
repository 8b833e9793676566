package topics_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

func aliasFacts(v ledger.Verdict, reason, matched string, aliases ...string) *topics.Facts {
	f := facts(v, reason)
	f.Matched = matched
	for _, key := range aliases {
		f.Aliases = append(f.Aliases, ledger.Key{Key: key})
	}
	return f
}

// Learning makes the rows of aliases from what clean tells, and finds the row of a
// repeat by what it was matched by.
func TestAliasHeadersComeBack(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "raw-ingest.as2", 12)
	clean := b.Output(rawRecord(), aliasFacts(ledger.New, "", "", "sbdh:0088%3A1/a", "as4:m1"))
	require.Equal(t, append(append([]string(nil), wireTable["clean"]...), "dedup-aliases=sbdh:0088%3A1/a as4:m1"), lines(clean.Headers))
	o, err := topics.ReadOutput(clean)
	require.NoError(t, err)
	require.Equal(t, []string{"sbdh:0088%3A1/a", "as4:m1"}, o.Aliases)
	require.Empty(t, o.Matched)

	seen := b.Output(rawRecord(), aliasFacts(ledger.Seen, ledger.ReasonAlias, "as4:m1", "as4:m1"))
	require.Subset(t, lines(seen.Headers), []string{"dedup-reason=alias", "dedup-matched=as4:m1", "dedup-aliases=as4:m1"})
	o, err = topics.ReadOutput(seen)
	require.NoError(t, err)
	require.Equal(t, "as4:m1", o.Matched)

	dead := lines(b.Output(rawRecord(), aliasFacts(ledger.Invalid, topics.CodeOutputRejected, "", "as4:m1")).Headers)
	require.Equal(t, wireTable["dead-letter"], dead)
}

func TestForgedAliases(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "raw-ingest.as2", 12)
	for _, c := range []struct{ name, value string }{
		{topics.HeaderAliases, " "},
		{topics.HeaderAliases, "a:1  a:2"},
		{topics.HeaderAliases, "a:1 a:1"},
		{topics.HeaderAliases, "a:1 a:2 a:3"},
		{topics.HeaderAliases, "edifact:4098765000014:14/4012345000023:14/77001"},
		{topics.HeaderAliases, "a:\x00"},
		{topics.HeaderAliases, strings.Repeat("a", 201)},
		{topics.HeaderMatched, "two keys"},
		{topics.HeaderMatched, strings.Repeat("a", 201)},
	} {
		out := b.Output(rawRecord(), facts(ledger.New, ""))
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: c.name, Value: []byte(c.value)})
		_, err := topics.ReadOutput(out)
		require.ErrorIs(t, err, topics.ErrMalformed, "%s %q", c.name, c.value)
		require.ErrorContains(t, err, c.name)
	}
}

// The bound of our headers where keys, scope and topic names are as long as they
// can be, and offsets too.
func TestHeadersWithAliasesAreBounded(t *testing.T) {
	t.Parallel()
	raw := "raw-ingest." + strings.Repeat("x", 238)
	key := func(c string) string { return c + ":" + strings.Repeat(c, 198) }
	for _, short := range []bool{false, true} {
		for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Drift} {
			b := newBuilder(t, raw, 12)
			f := aliasFacts(v, strings.Repeat("r", 64), "", key("a"), key("b"))
			f.Scope, f.Key = strings.Repeat("t", 40)+":"+strings.Repeat("f", 40), key("k")
			f.Repeat = math.MaxInt64
			if v == ledger.New {
				f.Reason = ""
			} else {
				f.Matched = key("b")
			}
			if short {
				f.Scope, f.Key, f.Reason = "acme:as2", "k:1", ""
				f.Aliases = f.Aliases[:1]
				f.Aliases[0].Key = "a:1"
			}
			f.Origin.Partition, f.Origin.Offset = math.MaxInt32, math.MaxInt64
			f.Entry.Origin.Partition, f.Entry.Origin.Offset = math.MaxInt32, math.MaxInt64
			in := rawRecord()
			in.Topic = raw
			out := b.Output(in, f)
			size, names := 0, map[string]bool{}
			for _, h := range out.Headers {
				size += len(h.Key) + len(h.Value)
				names[h.Key] = true
			}
			limit := 1280
			if short {
				limit = 1024
			}
			require.Less(t, size, limit, "%s", v)
			require.Equal(t, v == ledger.New || short, names[topics.HeaderAliases], "%s", v)
			o, err := topics.ReadOutput(out)
			require.NoError(t, err)
			require.Equal(t, f.Matched, o.Matched)
			require.True(t, o.Origin.In(raw, topicID))
		}
	}
}
