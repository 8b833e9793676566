package processor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// byOffset are the outputs by raw offset: topic, key, and what is said of aliases.
func (b *bundle) byOffset(n int) map[int64]string {
	b.t.Helper()
	all := map[int64]string{}
	for _, r := range b.records(n) {
		o, err := topics.ReadOutput(r)
		require.NoError(b.t, err)
		text := fmt.Sprintf("%s %s %s %s", r.Topic, o.Verdict, o.Key, o.Reason)
		if o.Matched != "" {
			text += " by " + o.Matched
		}
		if len(o.Aliases) > 0 {
			text += " with " + strings.Join(o.Aliases, ",")
		}
		all[o.Origin.Offset] = text
	}
	return all
}

// A repeat by an alias says so, the headers carry the aliases, and what the
// outputs tell brings them back to a ledger that has lost all.
func TestAliasesGoThrough(t *testing.T) {
	t.Parallel()
	b := setup(t)
	restore := b.ledger.copyState()
	b.produce(0, "p1~m:1", "p2~m:1", "p2~m:1 m:2", "p2")
	stop := b.start()
	want := map[int64]string{
		0: "clean.as2 NEW hdr:p1  with m:1",
		1: "duplicates SEEN hdr:p2 alias by m:1 with m:1",
		2: "duplicates SEEN hdr:p2 alias by m:1 with m:1,m:2",
		3: "clean.as2 NEW hdr:p2 ",
	}
	require.Equal(t, want, b.byOffset(4))
	stop()
	require.Equal(t, b.fact("hdr:p1").Origin, b.fact("m:1").Origin, "Redis is told of each key")

	restore()
	b.produce(0, "p4~m:1=changed", "p5~m:2")
	b.start()
	want[4], want[5] = "duplicates DRIFT hdr:p4 alias by m:1 with m:1", "clean.as2 NEW hdr:p5  with m:2"
	require.Equal(t, want, b.byOffset(6))
	require.Positive(t, b.ledger.lessons)
}

// fact is what Redis was told of a key last.
func (b *bundle) fact(key string) (last ledger.Fact) {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for _, f := range b.ledger.facts {
		if f.Key == key {
			last = f
		}
	}
	require.Equal(b.t, key, last.Key)
	return last
}

// What a rule finds of aliases, a record can have: each once, no more than fit, and
// those of the record before keep their place.
func TestKeysOfABatch(t *testing.T) {
	t.Parallel()
	b := &batch{}
	k := ledger.Key{Scope: "t:f", Key: "k", Window: time.Hour}
	text := func(keys []ledger.Key) (all []string) {
		for _, key := range keys {
			require.Equal(t, ledger.Key{Scope: "t:f", Key: key.Key, Window: time.Hour}, key)
			all = append(all, key.Key)
		}
		return all
	}
	one := b.key(k, nil)
	two := b.key(k, []string{"k", "a", "a", "b", "c"})
	three := b.key(k, []string{"a"})
	require.Equal(t, []string{"k"}, text(one))
	require.Equal(t, []string{"k", "a", "b"}, text(two))
	require.Equal(t, []string{"k", "a"}, text(three))
	require.Equal(t, 1, cap(one))
}

// A repeat by an alias has that for its reason, where the hashes give none.
func TestDecideTellsTheAlias(t *testing.T) {
	t.Parallel()
	r := &ledger.Registration{Keys: []ledger.Key{{}}, HashMode: ledger.HashRaw, Origin: ledger.Origin{Offset: 1}}
	res := &ledger.Result{Matched: "a"}
	v, reason := decide(r, res)
	require.Equal(t, ledger.Seen, v)
	require.Equal(t, ledger.ReasonAlias, reason)
	res.Entry.HashMode, res.Entry.PayloadSHA256 = "edifact", [32]byte{1}
	_, reason = decide(r, res)
	require.Equal(t, ledger.ReasonNotComparable, reason)
	res.Entry.Origin = r.Origin
	v, reason = decide(r, res)
	require.Equal(t, ledger.New, v)
	require.Empty(t, reason)
}
