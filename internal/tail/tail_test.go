package tail_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"dedupledger/internal/tail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cluster(t *testing.T) (opts []kgo.Opt, client *kgo.Client) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "a", "b"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	opts = []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}
	client, err = kgo.NewClient(append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return opts, client
}

func at(topic string, partition int32, minute int, value []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Timestamp: time.Unix(0, 0).Add(time.Duration(minute) * time.Minute), Value: value}
}

// TestNewest: the newest of all partitions and topics, in the order of time.
func TestNewest(t *testing.T) {
	t.Parallel()
	opts, client := cluster(t)
	for i := range 60 {
		r := at([]string{"a", "b"}[i%2], int32(i%3), i, fmt.Appendf(nil, "%d", i))
		require.NoError(t, client.ProduceSync(t.Context(), r).FirstErr())
	}
	for _, n := range []int{0, 1, 7, 1000} {
		var got []string
		err := tail.Run(t.Context(), tail.Options{Topics: []string{"a", "b"}, Last: n, Payload: true, Client: opts}, func(r tail.Record) error {
			got = append(got, string(r.Value))
			return nil
		})
		require.NoError(t, err)
		var want []string
		for i := max(0, 60-n); i < 60; i++ {
			want = append(want, fmt.Sprint(i))
		}
		require.Equal(t, want, got)
	}
	err := tail.Run(t.Context(), tail.Options{Topics: []string{"a", "c"}, Last: 1, Client: opts}, nil)
	var unknown *tail.UnknownTopicError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "c", unknown.Topic)
}

// TestBoundedAndFollowed: values are cut and left out, null stays apart from
// empty, and what comes later is shown until the context ends.
func TestBoundedAndFollowed(t *testing.T) {
	t.Parallel()
	opts, client := cluster(t)
	require.NoError(t, client.ProduceSync(t.Context(), at("a", 0, 1, bytes.Repeat([]byte("x"), 100<<10)), at("a", 0, 2, nil), at("a", 0, 3, []byte{})).FirstErr())
	ctx, cancel := context.WithCancel(t.Context())
	var got []tail.Record
	err := tail.Run(ctx, tail.Options{Topics: []string{"a"}, Last: 3, Follow: true, Payload: true, Client: opts}, func(r tail.Record) error {
		got = append(got, r)
		switch len(got) {
		case 3:
			client.Produce(context.WithoutCancel(ctx), at("a", 2, 0, []byte("later")), nil)
		case 4:
			cancel()
		}
		return nil
	})
	require.NoError(t, err, "told to stop")
	require.Equal(t, []int{100 << 10, -1, 0, 5}, []int{got[0].Size, got[1].Size, got[2].Size, got[3].Size})
	require.Len(t, got[0].Value, tail.MaxPayload)
	require.NoError(t, tail.Run(t.Context(), tail.Options{Topics: []string{"a"}, Last: 4, Client: opts}, func(r tail.Record) error {
		require.Nil(t, r.Value)
		return nil
	}))
}

// TestFollowsNewPartitions: a partition that is added while a topic is followed is
// shown from its start.
func TestFollowsNewPartitions(t *testing.T) {
	t.Parallel()
	opts, client := cluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, client.ProduceSync(ctx, at("a", 0, 0, []byte("first"))).FirstErr())
	var got []string
	err := tail.Run(ctx, tail.Options{Topics: []string{"a"}, Last: 1, Follow: true, Payload: true, Client: opts}, func(r tail.Record) error {
		got = append(got, fmt.Sprintf("%s/%d %s", r.Topic, r.Partition, r.Value))
		if len(got) > 1 {
			cancel()
			return nil
		}
		grown, err := kadm.NewClient(client).UpdatePartitions(ctx, 4, "a")
		if err == nil {
			err = grown.Error()
		}
		require.NoError(t, err)
		// One that has not seen the topic before.
		later, err := kgo.NewClient(append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		require.NoError(t, err)
		defer later.Close()
		return later.ProduceSync(ctx, at("a", 3, 0, []byte("added"))).FirstErr()
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a/0 first", "a/3 added"}, got)
}
