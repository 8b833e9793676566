package ledger_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// The dedup-id is what readers key on: it must stay what the standard's own
// function makes of the origin.
// Fault card: F22.
func TestOriginIDIsUUIDv5(t *testing.T) {
	t.Parallel()
	topic := ledger.TopicID(uuid.MustParse("5f1fe6b4-3a3f-4d0c-9a53-ef2b0b0f7b11"))
	for _, o := range []ledger.Origin{
		{},
		{Gate: ledger.GateKafka, Topic: topic, Partition: 7, Epoch: 3, Offset: 4711},
		{Topic: topic, Partition: math.MaxInt32, Epoch: math.MaxInt32, Offset: math.MaxInt64},
		{Topic: topic, Partition: math.MinInt32, Epoch: math.MinInt32, Offset: math.MinInt64},
	} {
		want := uuid.NewSHA1(uuid.UUID(o.Topic), fmt.Appendf(nil, "%d/%d/%d", o.Partition, o.Epoch, o.Offset))
		require.Equal(t, want, o.ID(), "%+v", o)
	}
}

func BenchmarkOriginID(b *testing.B) {
	o := ledger.Origin{Gate: ledger.GateKafka, Topic: ledger.TopicID{1, 2, 3}, Partition: 7, Epoch: 3, Offset: 1_234_567}
	b.ReportAllocs()
	for b.Loop() {
		o.ID()
	}
}
