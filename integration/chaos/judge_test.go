package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/integration/laws"
)

// The counts of the table are checked: what is lost, doubled or left open in
// made-up observations is counted and ends the campaign with an error.

// seenOnce is an observation of two raw records of one key, in two partitions, the
// second a repeat of the first.
func seenOnce() *laws.Observation {
	o := laws.NewObservation()
	now := time.Now().UTC()
	o.Taken = now
	o.TopicIDs["raw"], o.CleanOf["raw"] = uuid.UUID{1}, "clean"
	for p, kind := range []laws.Kind{laws.Clean, laws.Duplicates} {
		at := laws.Place{Topic: "raw", Partition: int32(p)}
		o.Sent[at] = &laws.Sent{Place: at, Message: laws.Keyed("t:rest", "k", []byte("v")), Raw: now, At: now}
		o.Outputs = append(o.Outputs, outputOf(o.Sent[at], kind, now))
	}
	return o
}

func outputOf(s *laws.Sent, kind laws.Kind, first time.Time) *laws.Output {
	r := &kgo.Record{Topic: string(kind), Partition: s.Place.Partition, Key: []byte(s.Key), Value: s.Value, Timestamp: s.Raw}
	for name, value := range map[string]string{
		"dedup-origin": s.Place.String(), "dedup-first-seen-at": first.Format(time.RFC3339Nano),
		"dedup-expires-at": first.Add(s.Window()).Format(time.RFC3339Nano),
	} {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return &laws.Output{Kind: kind, Record: r, Origin: s.Place}
}

func counted(c *campaign, o *laws.Observation) *verdict {
	v := &verdict{byStatus: map[string]int{}}
	c.lawOne(o, v)
	c.lawTwo(o, v)
	return v
}

func TestVerdictCounts(t *testing.T) {
	t.Parallel()
	v := counted(&campaign{}, seenOnce())
	require.NoError(t, v.err())
	require.Zero(t, v.lost+v.doubled)

	lost := seenOnce()
	lost.Outputs = lost.Outputs[:1]
	v = counted(&campaign{}, lost)
	require.Equal(t, 1, v.lost)
	require.ErrorContains(t, v.err(), "has 0 outputs")
	lost.Gone[laws.Place{Topic: "raw", Partition: 1}] = true
	require.NoError(t, counted(&campaign{}, lost).err(), "in a recorded gap")

	twice := seenOnce()
	twice.Outputs = append(twice.Outputs, twice.Outputs[1])
	v = counted(&campaign{}, twice)
	require.Equal(t, 1, v.doubled)
	require.ErrorContains(t, v.err(), "has 2 outputs")

	both := seenOnce()
	s := both.Sent[laws.Place{Topic: "raw", Partition: 1}]
	both.Outputs[1] = outputOf(s, laws.Clean, s.At)
	v = counted(&campaign{}, both)
	require.Equal(t, 1, v.doubled)
	require.ErrorContains(t, v.err(), "within one window")
	// Where PostgreSQL lost commits that is counted apart, across partitions only.
	v = counted(&campaign{losses: 1}, both)
	require.NoError(t, v.err())
	require.Equal(t, 1, v.across)
	for _, p := range []int32{0, 1} {
		both.Outputs[p].Origin.Partition = 0
		both.Sent[laws.Place{Topic: "raw", Offset: int64(p)}] = both.Sent[both.Outputs[p].Origin]
		both.Outputs[p].Origin.Offset = int64(p)
	}
	delete(both.Sent, laws.Place{Topic: "raw", Partition: 1})
	v = counted(&campaign{losses: 1}, both)
	require.Equal(t, 1, v.doubled, "within a partition it is never allowed")
	require.Error(t, v.err())
}

// TestOpenTransactionIsFound: one that somebody has left open ends the campaign
// with an error; none does not.
func TestOpenTransactionIsFound(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "clean"))
	require.NoError(t, err)
	defer cluster.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.TransactionalID("dedup-0-0"), kgo.DefaultProduceTopic("clean"))
	require.NoError(t, err)
	defer cl.Close()
	c := &campaign{s: &stage{admin: kadm.NewClient(cl)}}
	ask := func() *verdict {
		v := &verdict{}
		require.NoError(t, c.askTransactions(t.Context(), v))
		return v
	}
	require.NoError(t, ask().err())
	require.NoError(t, cl.BeginTransaction())
	require.NoError(t, cl.ProduceSync(t.Context(), kgo.StringRecord("v")).FirstErr())
	v := ask()
	require.Equal(t, 1, v.open)
	require.ErrorContains(t, v.err(), "dedup-0-0 is Ongoing")
	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
	require.NoError(t, ask().err())
}

// TestWordIsTheTruth: what an operator says of a partition whose outputs are gone
// is what the reader has seen, and where neither word is true it says none.
func TestWordIsTheTruth(t *testing.T) {
	t.Parallel()
	at := func(offset int64) laws.Place { return laws.Place{Topic: "raw", Offset: offset} }
	c := &campaign{tail: &tail{gens: &generations{}, done: map[laws.Place]int{at(0): 1, at(1): 1}}}
	for offset := range int64(4) {
		c.tail.kept = append(c.tail.kept, rawRecord{place: at(offset), epoch: 2})
	}
	for d, want := range map[int64]string{1: "committed", 2: "committed"} {
		word, err := c.word("raw", 0, spot{2, 0}, spot{2, d})
		require.NoError(t, err)
		require.Equal(t, want, word)
	}
	word, err := c.word("raw", 0, spot{2, 2}, spot{2, 4})
	require.NoError(t, err)
	require.Equal(t, "aborted", word)
	_, err = c.word("raw", 0, spot{2, 1}, spot{2, 4})
	require.ErrorContains(t, err, "1 records have an output and 2 have none")
}

// TestAilments: what the doctor finds must not be, but what PostgreSQL's loss
// explains.
func TestAilments(t *testing.T) {
	t.Parallel()
	const said = "ok    kafka      3 brokers\nwarn  gaps       x\nFAIL  deep       t:f k was accepted twice within its window\n" +
		"FAIL  deep       and 2 more that were accepted twice\nFAIL  positions  raw/1: held\n                 repair: x\n2 failures, 0 warnings\n"
	require.Len(t, ailments(said, false), 3)
	require.Equal(t, []string{"FAIL  positions  raw/1: held"}, ailments(said, true))
}

// TestRecoveryTellsRawApart: what is waited for first is a record in raw behind the
// mark, then its output; only the latter is the filters' own time.
func TestRecoveryTellsRawApart(t *testing.T) {
	t.Parallel()
	at := laws.Place{Topic: "raw"}
	recovery := func(ends, reached int64) (bool, error) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		c := &campaign{tail: &tail{ends: places{at: ends}, reached: places{at: reached}, waiting: map[chan struct{}]struct{}{}}}
		raw, err := c.recover(over, places{at: 5})
		return !raw.IsZero(), err
	}
	raw, err := recovery(5, 5)
	require.ErrorContains(t, err, "raw/0 is at 5, wanted behind 5")
	require.False(t, raw)
	raw, err = recovery(6, 5)
	require.ErrorContains(t, err, "raw/0 is at 5, wanted behind 5")
	require.True(t, raw)
	raw, err = recovery(6, 6)
	require.NoError(t, err)
	require.True(t, raw)
}
