package integration

import (
	"context"
	"hash/fnv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// largestBatch of the tests' producers, uncompressed: a raw topic can take a
// record compressed that is larger than its limit.
const largestBatch = 64 << 20

// defaultWindow is the built-in rule's for keys without a format.
const defaultWindow = 30 * 24 * time.Hour

// place is a record's place: topic, partition, offset.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// message is a record to produce and what is expected of it.
type message struct {
	Topic     int    // index in bundle.raw
	Partition int32  // 0-based; byKey: from the record key
	Key       string // tenant:flow; noKey: no record key at all
	Value     []byte // nil stays null
	Headers   []kgo.RecordHeader
	Time      time.Time // zero: now
	Want      want
}

// byKey lets the record key choose the partition, as producers do.
const byKey int32 = -1

// noKey makes a record without a key.
const noKey = "\x00none"

// want is what the checker expects, from the sender's own knowledge.
type want struct {
	Account string        // tenant:flow it is counted under; "": the record key, or unreadable
	Scope   string        // ledger scope; "": the account
	Key     string        // dedup key
	Window  time.Duration // of the key; 0: defaultWindow
	Code    string        // INVALID with this code; "": valid
}

// sent is a committed raw record.
type sent struct {
	place
	message
	raw time.Time // record timestamp
	at  time.Time // before it was produced
}

// unreadable is the account of records whose scope cannot be read.
const unreadable = "?:?"

// account of the record: tenant:flow.
func (s *sent) account() string {
	switch {
	case s.Want.Account != "":
		return s.Want.Account
	case s.Want.Code == "scope.malformed":
		return unreadable
	default:
		return s.Key
	}
}

// ledgerScope of the record.
func (s *sent) ledgerScope() string {
	if s.Want.Scope != "" {
		return s.Want.Scope
	}
	return s.account()
}

func (s *sent) window() time.Duration {
	if s.Want.Window != 0 {
		return s.Want.Window
	}
	return defaultWindow
}

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
	for i, r := range records {
		b.sent = append(b.sent, sent{place{r.Topic, r.Partition, r.Offset}, messages[i], r.Timestamp, at})
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
