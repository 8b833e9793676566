package topics_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
