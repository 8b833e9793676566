package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestHangingTransactionOnRaw: a producer has begun a transaction on a raw topic
// and does not end it. What lies behind it cannot be read, and lag looks normal:
// readiness and a metric tell the partition. The other goes on, and this one when
// the transaction is resolved.
// Fault card: F13.
func TestHangingTransactionOnRaw(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0, "DEDUP_KAFKA_TRANSACTION_TIMEOUT=11s")
	b.produce(t, b.everywhere("a", 5)...)
	b.awaitOutputs(t)
	end := b.openTransaction(t, b.raw[0], 0)
	b.produce(t, b.everywhere("b", 5)...)
	b.awaitHandledOf(t, 1)
	f.awaitReason(t, b.raw[0]+"/0: a transaction that is open at offset 12 keeps 13 behind it from being read")
	pinned := []string{`topic="` + b.raw[0] + `"`}
	f.awaitMetric(t, "dedup_pinned_seconds", append(pinned, `partition="0"`), func(v float64) bool { return v > 11 })
	f.awaitLog(t, "a transaction stays open on a raw topic")
	other, err := f.metric(t.Context(), "dedup_pinned_seconds", append(pinned, `partition="1"`)...)
	require.NoError(t, err)
	require.Zero(t, other)
	end(kgo.TryAbort)
	b.check(t)
	f.awaitReady(t)
	f.awaitMetric(t, "dedup_pinned_seconds", nil, func(v float64) bool { return v == 0 })
	f.term(t)
	b.checkStopped(t)
}

// TestDeletedRawTopic: a raw topic is deleted and stays so. It is given up after a
// while without burning the processor, and others go on all the time.
// Fault card: F13.
func TestDeletedRawTopic(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Topics: []string{"goes", "stays"}, Partitions: 2})
	f := b.start(t, 0)
	f.awaitPartitions(t, 4)
	b.produce(t, in(0, order("acme:edifact", "1", 5))...)
	b.check(t)
	b.deleteTopic(t, b.raw[0])
	b.mu.Lock()
	b.sent = nil
	b.mu.Unlock()
	stays := func(m message) message {
		m.Topic = 1
		return m
	}
	b.produce(t, stays(order("acme:edifact", "2", 5)), stays(order("acme:edifact", "1", 5)))
	b.awaitOutputs(t)
	before, err := f.metric(t.Context(), "process_cpu_seconds_total")
	require.NoError(t, err)
	began := time.Now()
	f.awaitPartitions(t, 2)
	f.awaitReady(t)
	f.aliveFor(t, 3*time.Second)
	after, err := f.metric(t.Context(), "process_cpu_seconds_total")
	require.NoError(t, err)
	share := (after - before) / time.Since(began).Seconds()
	t.Logf("%.2f of a processor over %s", share, time.Since(began).Round(time.Second))
	require.Less(t, share, 0.5, "share of a processor")
	b.produce(t, stays(order("acme:edifact", "3", 5)))
	b.awaitOutputs(t)
	require.Less(t, strings.Count(f.text(t), "\n"), 200, "lines in the log")
	f.term(t)
}

// damage flips a bit of a record in the log of a raw partition, on the disk of a
// broker that is stopped. The record is found by a text that stands nowhere else.
func damage(t *testing.T, k *devservices.Kafka, topic string, partition int32, at string) {
	t.Helper()
	segment := filepath.Join(k.Folder(topic, partition), "00000000000000000000.log")
	log, err := os.ReadFile(segment)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(log, []byte(at[1:])))
	log[bytes.Index(log, []byte(at[1:]))-1] ^= 1
	require.NoError(t, os.WriteFile(segment, log, 0o600))
}

// produceAlone sends each message as a batch of its own, not compressed.
func (b *bundle) produceAlone(t *testing.T, messages ...message) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0))
	require.NoError(t, err)
	defer c.Close()
	for _, m := range messages {
		at, r := time.Now(), b.records([]message{m})
		require.NoError(t, c.ProduceSync(t.Context(), r...).FirstErr())
		b.book(at, []message{m}, r)
	}
}

// TestDamagedBatch: a batch was damaged on the broker's disk. The records before
// it are filtered, though they come with the same fetch; then the partition is
// held and says which offset it is, and stays so while it is tried again; others go
// on. When the log is mended it goes on by itself, with nothing lost.
// Fault card: F13.
func TestDamagedBatch(t *testing.T) {
	t.Parallel()
	k, err := shared.services.StartKafka(t.Context(), devservices.KafkaOptions{Restricted: true}) // native
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	b := newBundle(t, setup{Partitions: 2, Kafka: k.Addr(), Restricted: k.RestrictedAddr()})
	message := func(key, value string) message {
		m := keyed("acme:rest", key, []byte(value))
		m.Partition = 0
		return m
	}
	const marker = "the record that is damaged"
	b.produceAlone(t, message("1", "one"), message("2", "two"), message("3", marker), message("4", "four"), message("2", "two"))
	b.produce(t, in(1, orders("acme:edifact", 0, 5)...)...)
	mend := func() {
		require.NoError(t, k.Stop(t.Context()))
		damage(t, k, b.raw[0], 0, marker)
		require.NoError(t, k.Start(t.Context()))
	}
	mend()
	f := b.launch(t, 0)
	said := f.awaitHeld(t, b.raw[0]+"/0", "unreadable")
	require.Contains(t, said, "the record at offset 2 cannot be read: encoded crc")
	b.awaitHandledOf(t, 1)
	require.Len(t, b.observeOnly(t).Outputs, 2+10, "those before it, and the other partition")
	held := func(v float64) bool { return v == 1 }
	f.awaitMetric(t, "dedup_held_partitions", []string{`reason="unreadable"`}, held)
	mend() // the same bit
	f.awaitReady(t)
	b.check(t)
	require.Equal(t, 1, strings.Count(f.text(t), "reason=unreadable"), "told once")
	f.term(t)
	b.checkStopped(t)
}
