package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/app/config"
)

// TestClientsFindNewLeadersSoon: a client that waits for an election asks again
// within a second, and not before a tenth of it has passed; how long it asks is
// bounded by the time, not by how often.
func TestClientsFindNewLeadersSoon(t *testing.T) {
	t.Parallel()
	cl, err := kgo.NewClient(append(KafkaOptions(config.Kafka{Brokers: []string{"127.0.0.1:1"}, ConnectionLifetime: time.Hour}), kgo.MetadataMaxAge(20*time.Second))...)
	require.NoError(t, err)
	defer cl.Close()
	require.Equal(t, metadataAge, cl.OptValue(kgo.MetadataMinAge))
	after, ok := cl.OptValue(kgo.RetryBackoffFn).(func(int) time.Duration)
	require.True(t, ok)
	total, last := time.Duration(0), time.Duration(0)
	for n := range tries + 1 {
		wait := after(n)
		require.GreaterOrEqual(t, wait, retryLeast*4/5, n)
		require.LessOrEqual(t, wait, retryMost, n)
		require.GreaterOrEqual(t, wait, last*4/5, "it does not shrink but by jitter: %d", n)
		total, last = total+wait, wait
	}
	require.InDelta(t, retryMost.Seconds(), last.Seconds(), 0.2)
	const most = 30 * time.Second // of the client, from the first try to the last
	require.Greater(t, total, 2*most)
}
