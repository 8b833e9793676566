package processor

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/ledger"
)

// A session that is a member no more and has not heard of it claims a partition, and
// registers nothing: its batch may be committed already by the one that has the
// partition now (session.claim).
func TestAStaleSessionRegistersNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.onePartition()
	stop := b.start()
	b.produce(0, "z") // the group has an offset
	b.read(1)
	stop()
	b.leave()
	b.produce(0, "a")
	first, registered := b.holdClaim(id, 1)
	b.start(unaware, func(c *Config) { c.Slot = 1 })
	<-first.asked
	left, err := b.adm.LeaveGroup(t.Context(), kadm.LeaveGroup("dedup").InstanceIDs(TransactionalID("dedup", 1, 0)))
	require.NoError(t, errors.Join(err, left.Error()))
	commits := b.hold(kmsg.TxnOffsetCommit)
	b.start()
	<-commits.asked
	require.EqualValues(t, 1, registered.Load())

	beats := b.asked(kmsg.Heartbeat)
	before := beats.Load()
	first.release()
	// The second is that of its next attempt.
	require.Eventually(t, func() bool { return beats.Load() >= before+2 || registered.Load() > 1 }, 20*time.Second, time.Millisecond)
	require.EqualValues(t, 1, registered.Load(), "registrations of the record")
	commits.release()
	require.Equal(t, map[string]int{"clean.as2 z": 1, "clean.as2 a": 1}, b.read(2))
}

// Between the look at the group's offset and the claim the one before may have
// written an offset of its last transaction.
func TestTheGroupsOffsetIsReadBehindTheClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.onePartition()
	b.produce(0, "a")
	claim, registered := b.holdClaim(id, 0)
	b.start(unaware)
	<-claim.asked
	b.leaveOpen("another", id, 1)
	fetches := b.asked(kmsg.OffsetFetch)
	before := fetches.Load()
	claim.release()
	require.Eventually(t, func() bool { return fetches.Load() >= before+3 || registered.Load() > 0 }, 20*time.Second, time.Millisecond)
	require.Zero(t, registered.Load(), "registrations although the offset is about to change")
	b.abort("another")
	require.Equal(t, map[string]int{"clean.as2 a": 1}, b.read(1))
}

// unaware is a session that hears of nothing by itself.
func unaware(c *Config) {
	c.Session = 5 * time.Minute
	c.ClientOptions = append(c.ClientOptions, kgo.HeartbeatInterval(40*time.Second))
}

// paused is a step that waits to be released.
type paused struct {
	taken       atomic.Bool
	asked, goOn chan struct{}
	release     func()
}

func (b *bundle) paused() *paused {
	p := &paused{asked: make(chan struct{}), goOn: make(chan struct{})}
	p.release = sync.OnceFunc(func() { close(p.goOn) })
	b.t.Cleanup(p.release)
	return p
}

// first reports whether this is the first call.
func (p *paused) first() bool {
	if !p.taken.CompareAndSwap(false, true) {
		return false
	}
	close(p.asked)
	return true
}

// holdClaim holds the first claim that is asked for, and counts the registrations of
// a record.
func (b *bundle) holdClaim(topic ledger.TopicID, offset int64) (*paused, *atomic.Int32) {
	p := b.paused()
	b.ledger.claiming = func() {
		if p.first() {
			<-p.goOn
		}
	}
	var n atomic.Int32
	b.ledger.fail = func(c *ledger.Chunk) error {
		for i := range c.Registrations {
			if o := c.Registrations[i].Origin; o.Topic == topic && o.Offset == offset {
				n.Add(1)
			}
		}
		return nil
	}
	return p, &n
}

// hold holds the first request of a kind.
func (b *bundle) hold(kind kmsg.Key) *paused {
	p := b.paused()
	b.cluster.ControlKey(kind.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if p.first() {
			b.cluster.SleepControl(func() { <-p.goOn })
		}
		return nil, nil, false
	})
	return p
}

// asked counts the requests of a kind from now on.
func (b *bundle) asked(kind kmsg.Key) *atomic.Int32 {
	var n atomic.Int32
	b.cluster.ControlKey(kind.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return &n
}

// abort ends the open transaction of a transactional id.
func (b *bundle) abort(transactionalID string) {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.TransactionalID(transactionalID))
	require.NoError(b.t, err)
	defer cl.Close()
	_, _, err = cl.ProducerID(b.t.Context())
	require.NoError(b.t, err)
}
