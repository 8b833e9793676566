package topics_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

func TestPartition(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 7, topics.Partition([]byte("acme:as2"), 7, 12, 12), "equal counts: the record's own")
	require.EqualValues(t, 7, topics.Partition(nil, 7, 12, 12))
	require.EqualValues(t, 1, topics.Partition(nil, 7, 12, 3), "no key: by raw partition, the same at every redelivery")
}

// An independent producer with Kafka's default partitioner must put a key where
// the filter puts it.
func FuzzPartitionIsKafkas(f *testing.F) {
	for _, key := range []string{"", "a", "ab", "abc", "acme:as2", "tenant42:as4", "\xff\xfe\xfd\xfc\xfb"} {
		f.Add([]byte(key), int32(12))
	}
	kafkas := kgo.StickyKeyPartitioner(nil)
	f.Fuzz(func(t *testing.T, key []byte, count int32) {
		if key == nil || count < 1 || count > 100_000 {
			return
		}
		want := kafkas.ForTopic("t").Partition(&kgo.Record{Key: key}, int(count))
		require.EqualValues(t, want, topics.Partition(key, 0, count+1, count))
	})
}
