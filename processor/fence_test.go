package processor

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A session ends what its predecessor left open at once, not with its own first
// record, which may never come:
//
//	filter 0 is killed between its offsets and the end of its transaction
//	its session times out, and the group gives its partition to filter 1
//	filter 1 has another transactional id: the group's offset is not stable, it waits
//	filter 0 is started again and is given no partition: nothing to read or write
//
// Unless filter 0 asks for its producer id all the same, the partition stands still
// until the transaction timeout, which is far beyond this test.
func TestASessionWithoutAPartitionEndsItsPredecessorsTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.onePartition()
	long := func(c *Config) { c.Transaction = 15 * time.Minute }
	stop := b.start(long)
	b.produce(0, "a")
	b.read(1)
	stop()
	b.produce(0, "b")
	b.leaveOpen(TransactionalID("dedup", 0, 0), id, 2)
	b.leave()
	var log lines
	b.start(long, func(c *Config) {
		c.Slot, c.overdue = 1, time.Nanosecond
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	require.Eventually(t, func() bool { return log.count("a partition waits for a transaction") > 0 }, 20*time.Second, 5*time.Millisecond)
	b.start(long)
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1}, b.read(2))
}

// onePartition makes the raw topic anew with a single partition.
func (b *bundle) onePartition() (id [16]byte) {
	b.t.Helper()
	gone, err := b.adm.DeleteTopics(b.t.Context(), rawTopic)
	require.NoError(b.t, errors.Join(err, gone.Error()))
	made, err := b.adm.CreateTopic(b.t.Context(), 1, 1, nil, rawTopic)
	require.NoError(b.t, err)
	return made.ID
}

// leaveOpen leaves a transaction as a kill between the offsets and the end does:
// with an output, and with an offset of the raw topic's partition 0.
func (b *bundle) leaveOpen(transactionalID string, raw kadm.TopicID, offset int64) {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.TransactionalID(transactionalID), kgo.TransactionTimeout(15*time.Minute))
	require.NoError(b.t, err)
	defer cl.Close()
	require.NoError(b.t, cl.BeginTransaction())
	require.NoError(b.t, cl.ProduceSync(b.t.Context(), &kgo.Record{Topic: cleanTopic, Value: []byte("never committed")}).FirstErr())
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group = transactionalID, "dedup"
	req.ProducerID, req.ProducerEpoch, err = cl.ProducerID(b.t.Context())
	require.NoError(b.t, err)
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = rawTopic, raw
	topic.Partitions = append(topic.Partitions, kmsg.NewTxnOffsetCommitRequestTopicPartition())
	topic.Partitions[0].Offset = offset
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(b.t.Context(), cl)
	require.NoError(b.t, err)
	require.NoError(b.t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}
