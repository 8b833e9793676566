package integration

import (
	"context"
	"hash/fnv"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// largestBatch of the tests' producers, uncompressed: a raw topic can take a
// record compressed that is larger than its limit.
const largestBatch = 64 << 20

// produce sends the messages, in order, and keeps the books.
func (b *bundle) produce(t *testing.T, messages ...message) {
	t.Helper()
	at := time.Now()
	records := b.records(messages)
	require.NoError(t, b.client.ProduceSync(t.Context(), records...).FirstErr())
	b.book(at, messages, records)
}

func (b *bundle) records(messages []message) []*kgo.Record {
	records := make([]*kgo.Record, 0, len(messages))
	for i := range messages {
		records = append(records, b.record(&messages[i]))
	}
	return records
}

func (b *bundle) record(m *message) *kgo.Record {
	r := &kgo.Record{
		Topic: b.raw[m.Topic], Partition: m.Partition, Key: []byte(m.Key), Value: m.Value,
		Headers: append([]kgo.RecordHeader(nil), m.Headers...), Timestamp: m.Time,
	}
	if m.Key == noKey {
		r.Key = nil
	}
	if r.Timestamp.IsZero() {
		r.Timestamp = time.Now()
	}
	r.Timestamp = r.Timestamp.Truncate(time.Millisecond)
	if m.Partition == byKey {
		h := fnv.New32a()
		_, _ = h.Write(r.Key) // never fails
		r.Partition = int32(h.Sum32() % uint32(b.partitions))
	}
	return r
}

func (b *bundle) book(at time.Time, messages []message, records []*kgo.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range messages {
		b.sent = append(b.sent, sent{Place: laws.PlaceOf(records[i]), Message: m, Raw: records[i].Timestamp, At: at})
	}
}

// books is a copy of what was sent so far.
func (b *bundle) books() []sent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sent(nil), b.sent...)
}

// produceTransaction sends the messages in a transaction of their own. Aborted
// ones are not booked: nothing may come of them.
func (b *bundle) produceTransaction(t *testing.T, commit bool, messages ...message) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID("sender-"+b.id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	require.NoError(t, err)
	defer c.Close()
	at := time.Now()
	records := b.records(messages)
	require.NoError(t, c.BeginTransaction())
	require.NoError(t, c.ProduceSync(t.Context(), records...).FirstErr())
	require.NoError(t, c.EndTransaction(context.WithoutCancel(t.Context()), kgo.TransactionEndTry(commit)))
	if commit {
		b.book(at, messages, records)
	}
}
