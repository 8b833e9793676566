package integration

import (
	"testing"

	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
)

// TestBrokerRestarts: the broker goes away in the middle of the work, and comes
// back at its address with its log. What was open is decided as if nothing had
// happened.
func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	k, err := shared.services.StartKafka(t.Context(), devservices.KafkaOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	b := newBundle(t, setup{Partitions: 2, Kafka: k.Addr()})
	f := b.start(t, 0, "DEDUP_PROCESSOR_BATCH_RECORDS=50")
	seen := b.track(t)
	b.produce(t, orders("acme:edifact", 0, 500)...)
	seen.awaitCount(t, 100)

	require.NoError(t, k.Stop(t.Context()))
	require.NoError(t, k.Start(t.Context()))
	b.produce(t, orders("acme:edifact", 400, 200)...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
