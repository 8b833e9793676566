package processor

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// damaging is a connection on which a bit of what holds the word is flipped while
// it is on.
type damaging struct {
	net.Conn
	word []byte
	on   *atomic.Bool
}

func (d damaging) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if i := bytes.Index(b[:n], d.word); i >= 0 && d.on.Load() {
		b[i] ^= 1
	}
	return n, err
}

// A batch cannot be read. The records before it come with the same fetch and are
// filtered; then the partition is held, and goes on when the batch is whole again.
// Fault card: F13.
func TestUnreadableBatch(t *testing.T) {
	t.Parallel()
	b := setupWith(t, []kgo.Opt{kgo.ProducerBatchCompression(kgo.NoCompression())})
	for _, key := range []string{"a", "b=damaged", "a"} {
		b.produce(0, key)
	}
	b.produce(1, "c")
	var damage atomic.Bool
	damage.Store(true)
	held := make(chan string, 16)
	b.start(func(c *Config) {
		c.Log = slog.New(&heldWatcher{held})
		c.ClientOptions = []kgo.Opt{kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return damaging{conn, []byte("damaged"), &damage}, err
		})}
	})
	require.Equal(t, heldUnreadable, <-held)
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 c": 1}, b.read(2))
	damage.Store(false)
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 c": 1, "clean.as2 b": 1, "duplicates a": 1}, b.read(4))
	require.Empty(t, held, "told once")
}

// A session is given a partition of a topic that was made again after its client
// had learned the topic's id, and never had one of it before: the client asks for
// a topic that no broker has. It is rebuilt, not held as unreadable for ever.
// Fault card: F13.
func TestTopicMadeAgainBeforeItsFirstPartition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a")
	var opened atomic.Int32
	held := make(chan string, 16)
	b.cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		opened.Add(1)
		return nil, nil, false
	})
	b.cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req := r.(*kmsg.FetchRequest)
		if opened.Load() > 1 || len(req.Topics) == 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range req.Topics {
			rt := kmsg.NewFetchResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewFetchResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.UnknownTopicID.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	b.start(func(c *Config) {
		c.Log = slog.New(&heldWatcher{held})
		c.ClientOptions = []kgo.Opt{kgo.MetadataMinAge(10 * time.Millisecond)}
	})
	require.Equal(t, map[string]int{"clean.as2 a": 1}, b.read(1))
	require.Empty(t, held)
}
