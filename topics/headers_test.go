package topics_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

func TestTimesAreWrittenAsTheLayoutSays(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	times := []time.Time{
		{},
		time.Unix(0, 0), time.Unix(0, 999_999_999), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(12_345, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 2, 3, 4, 5, 6, 70_000, time.FixedZone("east", 7200)),
	}
	for range 2000 {
		times = append(times, time.Unix(r.Int64N(1<<38), r.Int64N(1_000_000_000)))
	}
	for _, at := range times {
		require.Equal(t, "x"+at.UTC().Format(topics.TimeLayout), string(topics.AppendTime([]byte("x"), at)))
	}
}

// TestNthCountsFromTheLast: of repeats the last is 0, names match in any case.
func TestNthCountsFromTheLast(t *testing.T) {
	t.Parallel()
	headers := []kgo.RecordHeader{header("Message-ID", "first"), header("message-id", "second"), {Key: "MESSAGE-ID"}, header("message-i", "no")}
	in, err := topics.NewInput(nil, map[string]string{"dedup-key": "message-id"})
	require.NoError(t, err)
	for back, want := range []string{"", "second", "first"} {
		value, ok := topics.Nth(headers, "Message-Id", back)
		require.True(t, ok)
		require.Equal(t, want, string(value))
		value, ok = in.Nth(headers, topics.HeaderKey, back)
		require.True(t, ok, "under the sender's name")
		require.Equal(t, want, string(value))
	}
	_, ok := topics.Nth(headers, "message-id", 3)
	require.False(t, ok)
}
