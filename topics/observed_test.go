package topics_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// TestObservedGoesToClean: in a flow that only observes everything is in clean,
// with the verdict it would have got, an id of its own, and nothing of duplicates.
func TestObservedGoesToClean(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "raw-ingest.as2", 5)
	row := []string{"dedup-first-seen-at=2026-11-27T09:30:02.114007Z", "dedup-expires-at=2027-01-26T09:30:02.114007Z"}
	key := []string{"dedup-key=edifact:4098765000014:14/4012345000023:14/77001"}
	for _, c := range []struct {
		verdict          ledger.Verdict
		reason, key      string
		first, last, row []string
	}{
		{ledger.Seen, "", "k", key, nil, row},
		{ledger.Seen, ledger.ReasonNotComparable, "k", key, []string{"dedup-reason=hash.not_comparable"}, row},
		{ledger.Drift, "hash.mime-parts/1", "k", key, []string{"dedup-reason=hash.mime-parts/1"}, row},
		{ledger.Invalid, "edifact.no_unz", "", nil, []string{"dedup-reason=edifact.no_unz"}, nil},
		{ledger.Invalid, "scope.fed_by_api", "k", key, []string{"dedup-reason=scope.fed_by_api"}, nil},
	} {
		f := facts(c.verdict, c.reason)
		f.Observed, f.Omit = true, true
		if c.key == "" {
			f.Key, f.Entry = "", ledger.Entry{}
		}
		in := rawRecord()
		in.Headers = []kgo.RecordHeader{{Key: "x", Value: []byte("y")}, {Key: "Dedup-Id", Value: []byte("forged")}}
		out := b.Output(in, f)
		require.Equal(t, "clean.as2", out.Topic)
		require.EqualValues(t, 3, out.Partition)
		require.Equal(t, in.Value, out.Value, "clean always has the value")
		want := append([]string{"x=y"}, c.first...)
		want = append(want, "dedup-scope=acme:as2", "dedup-id=82db9ca1-7a6a-57ad-a35b-7f50fb4c7f42",
			"dedup-status="+c.verdict.String(), "dedup-origin=raw-ingest.as2/3/8790")
		want = append(want, c.row...)
		want = append(want, "dedup-payload-sha256="+emptySHA256)
		require.Equal(t, append(want, c.last...), lines(out.Headers))

		read, err := topics.ReadOutput(out)
		require.NoError(t, err)
		require.Equal(t, c.verdict, read.Verdict, "no NEW, although it is in clean")
		require.Equal(t, c.reason, read.Reason)
		require.Equal(t, f.Key, read.Key)
		epoch, ok := read.Epoch(topicID, 0, 9)
		require.True(t, ok)
		require.EqualValues(t, 5, epoch)
	}
}
