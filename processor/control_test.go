package processor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// A raw topic with transactions ends with a marker, or with an aborted stretch
// before one. A partition at rest stands behind them: when retention has taken
// everything it is not taken for one that records were lost of.
// Fault card: F12.
func TestThePositionPassesControlRecords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	up, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.TransactionalID("up"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer up.Close()
	send := func(key string, end kgo.TransactionEndTry) {
		require.NoError(t, up.BeginTransaction())
		require.NoError(t, up.ProduceSync(t.Context(), &kgo.Record{
			Topic: rawTopic, Key: []byte("acme:as2"), Value: []byte("x"),
			Headers: []kgo.RecordHeader{{Key: topics.HeaderKey, Value: []byte(key)}},
		}).FirstErr())
		require.NoError(t, up.EndTransaction(t.Context(), end))
	}
	send("a", kgo.TryCommit)
	send("aborted", kgo.TryAbort)
	stop := b.start()
	b.read(1)
	require.Eventually(t, func() bool {
		b.ledger.mu.Lock()
		defer b.ledger.mu.Unlock()
		for id, p := range b.ledger.positions {
			if id.Partition == 0 {
				return p.W == ledger.Position{Offset: 4} && p.D == p.W
			}
		}
		return false
	}, 20*time.Second, 5*time.Millisecond, "a, its marker, the aborted one, its marker")
	stop()
	b.leave()
	var all kadm.Offsets
	all.AddOffset(rawTopic, 0, 4, -1)
	rs, err := b.adm.DeleteRecords(t.Context(), all)
	require.NoError(t, err)
	require.NoError(t, rs.Error())
	b.start()
	send("b", kgo.TryCommit)
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1}, b.read(2))
}
