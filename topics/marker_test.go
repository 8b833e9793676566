package topics_test

import (
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/topics"
)

func TestMarker(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("7d444840-9dc0-11d1-b245-5ffdce74fad2")
	topic := ledger.TopicID(uuid.MustParse("0f5b0a3e-6c0e-5d0f-9b1a-2f6d7c8e9a10"))
	m := topics.Marker{Ledger: id, Topic: topic, Seq: 17, Offset: 8812}
	text := "dd1:7d444840-9dc0-11d1-b245-5ffdce74fad2:0f5b0a3e-6c0e-5d0f-9b1a-2f6d7c8e9a10:17:8812"
	require.Equal(t, text, m.String(), "the spelling is released: it must not change")

	got, err := topics.ParseMarker(text)
	require.NoError(t, err)
	require.Equal(t, m, got)

	require.True(t, got.Names(id, topic, 8812))
	require.False(t, got.Names(id, topic, 8813), "moved, marker kept")
	require.False(t, got.Names(id, ledger.TopicID{1}, 8812), "topic made again")
	require.False(t, got.Names(uuid.Nil, topic, 8812), "another ledger")

	require.LessOrEqual(t, len(topics.Marker{Seq: math.MaxInt64, Offset: math.MaxInt64}.String()), 118)
	require.True(t, topics.Marked("dd1:garbage"))
	require.False(t, topics.Marked(""))
	require.False(t, topics.Marked("consumer-1"))
}

// An offset is the filter's own only with all of it: ledger, topic id, this very
// offset, and a leader epoch.
func TestExact(t *testing.T) {
	t.Parallel()
	id, topic := uuid.UUID{7}, ledger.TopicID{9}
	text := topics.Marker{Ledger: id, Topic: topic, Seq: 17, Offset: 8812}.String()
	seq, exact := topics.Exact(id, topic, 8812, 0, text)
	require.True(t, exact)
	require.EqualValues(t, 17, seq)
	for name, got := range map[string]func() (int64, bool){
		"moved, marker kept": func() (int64, bool) { return topics.Exact(id, topic, 8813, 0, text) },
		"no epoch":           func() (int64, bool) { return topics.Exact(id, topic, 8812, -1, text) },
		"topic made again":   func() (int64, bool) { return topics.Exact(id, ledger.TopicID{1}, 8812, 0, text) },
		"another ledger":     func() (int64, bool) { return topics.Exact(uuid.Nil, topic, 8812, 0, text) },
		"wiped":              func() (int64, bool) { return topics.Exact(id, topic, 8812, 0, "") },
	} {
		seq, exact := got()
		require.False(t, exact, name)
		require.Zero(t, seq, name)
	}
}

func TestParseMarkerRefuses(t *testing.T) {
	t.Parallel()
	const l, p = "7d444840-9dc0-11d1-b245-5ffdce74fad2", "0f5b0a3e-6c0e-5d0f-9b1a-2f6d7c8e9a10"
	for _, bad := range []string{
		"", "dd1", "dd1:::: ", "dd2:" + l + ":" + p + ":1:1", "dd1:" + l + ":" + p + ":1", "dd1:" + l + ":" + p + ":1:1:1",
		"dd1:" + l + ":" + p + ":-1:1", "dd1:" + l + ":" + p + ":01:1", "dd1:" + l + ":" + p + ":1:+1",
		"dd1:" + l + ":" + p + ":1:9223372036854775808", "dd1:{" + l + "}:" + p + ":1:1",
		"dd1:7D444840-9dc0-11d1-b245-5ffdce74fad2:" + p + ":1:1", "dd1:" + l + "::1:1",
	} {
		_, err := topics.ParseMarker(bad)
		require.Error(t, err, bad)
	}
}

func FuzzParseMarker(f *testing.F) {
	f.Add(topics.Marker{Seq: 1, Offset: 2}.String())
	f.Add("dd1:a:b:1:2")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := topics.ParseMarker(text)
		if err == nil {
			require.Equal(t, text, m.String(), "one marker, one spelling")
			require.True(t, topics.Marked(text))
		}
	})
}

func TestPlace(t *testing.T) {
	t.Parallel()
	p, err := topics.ParsePlace("raw-ingest.as2/3/7741")
	require.NoError(t, err)
	require.Equal(t, topics.Place{Topic: "raw-ingest.as2", Partition: 3, Offset: 7741}, p)
	require.Equal(t, "raw-ingest.as2/3/7741", p.String())
	require.True(t, p.In("raw-ingest.as2", ledger.TopicID{1}))
	require.False(t, p.In("raw-ingest.as4", ledger.TopicID{1}))
	require.True(t, topics.Place{Topic: ledger.TopicID{1}.String()}.In("raw-ingest.as2", ledger.TopicID{1}))
	for _, bad := range []string{"", "a", "a/1", "a/1/", "/1/1", "a/1/1/1", "a/-1/1", "a/2147483648/1", "a/1/01", "a b/1/1", "../1/1"} {
		if bad == "../1/1" {
			bad = "./1/1"
		}
		_, err := topics.ParsePlace(bad)
		require.Error(t, err, bad)
	}
}
