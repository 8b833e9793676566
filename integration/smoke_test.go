package integration

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestFirstCopyResendChangedResend(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{})
	f := b.start(t, 0)
	first := order("acme:edifact", "77001", 5)
	first.Headers = []kgo.RecordHeader{
		{Key: "trace", Value: []byte("1")},
		{Key: "trace", Value: []byte{}},
		{Key: "trace"},
		{Key: "dedup-id", Value: []byte("forged")},
		{Key: "Dedup-Status", Value: []byte("NEW")},
	}
	b.produce(t,
		first,
		order("acme:edifact", "77001", 5),
		order("acme:edifact", "77001", 6),
		cutOrder("acme:edifact", "77002"),
		order("beta:edifact", "77001", 5),
		purchaseOrder("acme:x12", 12, 1),
		purchaseOrder("acme:x12", 12, 1),
		keyed("acme:rest", "invoice-1", nil),
		message{Partition: byKey, Key: "acme", Value: []byte("x"), Want: want{Code: "scope.malformed"}},
		message{Partition: 0, Key: noKey, Value: []byte("x"), Want: want{Code: "scope.malformed"}},
	)
	b.check(t)
	f.awaitMetric(t, "dedup_messages_total", []string{`status="NEW"`}, func(v float64) bool { return v == 4 })
	f.term(t)
	b.checkStopped(t)
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	const n, each = 2000, 5
	b := newBundle(t, setup{})
	k := b.track(t)
	f := b.start(t, 0, "DEDUP_PROCESSOR_BATCH_RECORDS=100")
	for from := 0; from < n; from += 500 {
		var batch []message
		for i := from; i < from+500; i++ {
			scope := fmt.Sprintf("t%d:edifact", i%3)
			batch = append(batch, order(scope, fmt.Sprint(i-i%each), 5))
		}
		b.produce(t, batch...)
	}
	k.awaitCount(t, n/10)
	f.kill(t)
	f = b.start(t, 0)
	k.awaitCount(t, n/2)
	f.kill(t)
	f = b.start(t, 0)
	// Of what was committed before a kill only a new owner can say so: the last
	// filter gets something to do in every partition before it is stopped.
	for partition := range b.partitions {
		last := order("t0:edifact", "last", 5)
		last.Partition = int32(partition)
		b.produce(t, last)
	}
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

func TestOneKeyInTwoTopicsAndTwoProcesses(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Topics: []string{"as2", "sftp"}, Partitions: 2})
	f, g := b.start(t, 0), b.start(t, 1)
	var batch []message
	for i := range 300 {
		for topic := range b.raw {
			m := order("acme:edifact", fmt.Sprint(i), 5)
			m.Topic, m.Partition = topic, int32(i%2)
			batch = append(batch, m)
		}
	}
	b.produce(t, batch...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}

// TestSendersTransactions: what a sender aborted is as if it had never been, and
// markers of transactions are no gap.
// Fault card: F24.
func TestSendersTransactions(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	b.produceTransaction(t, false, order("acme:edifact", "1", 5))
	b.produceTransaction(t, true, order("acme:edifact", "2", 5))
	large := keyed("acme:rest", "large", bytes.Repeat([]byte("EDI "), 5<<20/4))
	b.produce(t, order("acme:edifact", "1", 6), large)
	b.produceTransaction(t, false, order("acme:edifact", "3", 5))
	b.check(t)
	f.term(t)
	require.Len(t, b.books(), 3)
	b.checkStopped(t)
}
