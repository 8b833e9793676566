package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"dedupledger/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openTestBroker(t *testing.T) *broker {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	b, err := openBroker(t.Context(), c.ListenAddrs()[0])
	require.NoError(t, err)
	t.Cleanup(b.close)
	return b
}

// TestSettle: the outputs end with an aborted transaction, which yields no
// record; reading still knows that it has read all.
func TestSettle(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	require.Equal(t, []string{"clean.demo", "duplicates", "dead-letter"}, b.outputs)
	require.NoError(t, b.send(t.Context(), onePerPartition()[:1]))
	require.Equal(t, 1, b.books.missing(0))

	filter, err := kgo.NewClient(kgo.SeedBrokers(b.client.OptValue(kgo.SeedBrokers).([]string)...),
		kgo.TransactionalID("filter"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer filter.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		require.NoError(t, filter.BeginTransaction())
		out := ends{}.committed("clean.demo", &b.books.sent[0], ledger.New)
		require.NoError(t, filter.ProduceSync(t.Context(), out).FirstErr())
		require.NoError(t, filter.EndTransaction(t.Context(), end))
	}
	require.NoError(t, b.settle(t.Context(), 0))
	got := b.books.count(0)
	require.True(t, got.is(1, 0, 0, 0), "%v", got.faults)
}

// TestRewind: static members of a stopped process are still in the group, and
// are taken out first.
func TestRewind(t *testing.T) {
	t.Parallel()
	b := openTestBroker(t)
	var members []*kgo.Client
	for _, id := range instances() {
		c, err := kgo.NewClient(kgo.SeedBrokers(b.client.OptValue(kgo.SeedBrokers).([]string)...),
			kgo.ConsumerGroup(group), kgo.InstanceID(id), kgo.ConsumeTopics(rawTopic), kgo.DisableAutoCommit())
		require.NoError(t, err)
		members = append(members, c)
	}
	for _, c := range members {
		require.NoError(t, await(t.Context(), func() (bool, error) {
			_, generation := c.GroupMetadata()
			return generation >= 0, nil
		}))
	}
	for _, c := range members {
		c.CloseAllowingRebalance()
	}
	var offsets kadm.Offsets
	for p := range int32(partitions) {
		offsets.AddOffset(rawTopic, p, 5, 0)
	}
	_, err := b.admin.CommitOffsets(t.Context(), group, offsets)
	require.NoError(t, err)
	require.NoError(t, b.rewind(t.Context()))
	require.NoError(t, b.rewind(t.Context()), "members whose session has timed out are gone already")
	at, err := b.committed(t.Context())
	require.NoError(t, err)
	require.Equal(t, make([]int64, partitions), at)
	groups, err := b.admin.DescribeGroups(t.Context(), group)
	require.NoError(t, err)
	require.Empty(t, groups[group].Members)
}
