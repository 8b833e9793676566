package integration

import (
	"testing"

	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
)

// TestBrokerRestarts: the broker goes away while the filter is at rest, and
// comes back at its address with its log. The filter goes on by itself; what was
// seen before stays seen. A lone broker that goes away in the middle of a
// transaction can leave it open for ever (internal/hanging).
func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	k, err := shared.services.StartKafka(t.Context(), devservices.KafkaOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	b := newBundle(t, setup{Partitions: 2, Kafka: k.Addr()})
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 100)...)
	b.check(t)

	require.NoError(t, k.Stop(t.Context()))
	require.NoError(t, k.Start(t.Context()))
	b.produce(t, orders("acme:edifact", 50, 100)...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
