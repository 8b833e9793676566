package processor

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A coordinator that refuses the offsets again and again makes the client abort
// without an error. The batch comes again at once the first time only.
func TestAbortsWithoutAnErrorSlowDown(t *testing.T) {
	t.Parallel()
	s := &session{proc: &Processor{}, state: &sessionState{}}
	s.waitAfterAbort(t.Context(), nil)
	for n := 1; n <= 2; n++ {
		require.Equal(t, n, s.failures)
		began := time.Now()
		s.waitAfterAbort(t.Context(), nil)
		require.GreaterOrEqual(t, time.Since(began), retryMin<<n/2)
		require.False(t, s.state.failing.IsZero(), "readiness tells")
	}
}

// A record that no output takes in any form holds its partition, and no other.
func TestDeadLetterRefusesAReference(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for topic, limit := range map[string]string{cleanTopic: "2000", "dead-letter": "60"} {
		_, err := b.adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new(limit)}}, topic)
		require.NoError(t, err)
	}
	b.produce(0, "big="+strings.Repeat("x", 3000))
	held := make(chan string, 16)
	b.start(func(c *Config) {
		c.Compression, c.ClientOptions = "none", []kgo.Opt{kgo.ProducerBatchMaxBytes(1 << 20)}
		c.Log = slog.New(&heldWatcher{held})
	})
	for reason := range held {
		if reason == heldDeadLetter {
			break
		}
	}
	b.produce(1, "a", "b")
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1}, b.read(2))
}
