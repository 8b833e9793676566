package processor

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// Where the raw log was cut, later records have lower offsets: the epoch says
// which output came first.
func TestOutputsAreMergedByPosition(t *testing.T) {
	t.Parallel()
	waiting := func(ps ...ledger.Position) []told {
		var ts []told
		for _, p := range ps {
			ts = append(ts, told{origin: p})
		}
		return ts
	}
	old, cut := ledger.Position{Epoch: 1, Offset: 9}, ledger.Position{Epoch: 2, Offset: 5}
	r := &outputReader{streams: map[place]*stream{
		{cleanTopic, 0}:   {waiting: waiting(ledger.Position{Epoch: 1, Offset: 4}, cut)},
		{"duplicates", 0}: {waiting: waiting(old)},
	}}
	var got []int64
	for {
		o, ok, err := r.next(t.Context())
		require.NoError(t, err)
		if !ok {
			break
		}
		got = append(got, o.origin.Offset)
	}
	require.Equal(t, []int64{4, 9, 5}, got)
}

// A transaction that hangs on an output keeps the rest behind it from being
// read. The reader gives its place to another partition's.
// Fault card: F13.
func TestReadingBehindAHangingTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.TransactionalID("hangs"))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	require.NoError(t, cl.BeginTransaction())
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "duplicates", Value: []byte("x")}).FirstErr())
	p := New(Config{Brokers: b.cluster.ListenAddrs(), FetchMax: 1 << 20, Registry: prometheus.NewRegistry()})
	all := []place{{"duplicates", 0}, {"duplicates", 1}, {"duplicates", 2}}
	r, err := p.openReader(t.Context(), b.adm, nil, all, func(*kgo.Record) (told, bool) { return told{}, false })
	require.NoError(t, err)
	defer r.close()
	r.silence = 100 * time.Millisecond
	_, _, err = r.next(t.Context())
	require.ErrorIs(t, err, errReaderSilent)
}

// A position kept where the last output of a transaction ends, before its marker.
// When retention has taken all, nothing that must be learned is gone.
func TestOnlyTheMarkerIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a", "b")
	stop := b.start()
	b.read(2)
	stop()
	b.emptyOutput(cleanTopic, 0)
	ends, err := b.adm.ListEndOffsets(t.Context(), cleanTopic)
	require.NoError(t, err)
	end, _ := ends.Lookup(cleanTopic, 0)
	p := New(Config{Brokers: b.cluster.ListenAddrs(), FetchMax: 1 << 20, Registry: prometheus.NewRegistry()})
	open := func(at int64) (ledger.Outputs, error) {
		r, err := p.openReader(t.Context(), b.adm, ledger.Outputs{cleanTopic: {0: at}}, []place{{cleanTopic, 0}},
			func(*kgo.Record) (told, bool) { return told{}, true })
		if err != nil {
			return nil, err
		}
		defer r.close()
		_, there, err := r.next(t.Context())
		require.False(t, there)
		return r.ends(), err
	}
	outs, err := open(end.Offset - 1)
	require.NoError(t, err, "the marker")
	require.Equal(t, end.Offset, outs[cleanTopic][0])
	_, err = open(end.Offset - 2)
	require.ErrorIs(t, err, errOutputsGone, "the last output")
	for at, gone := range map[int64]bool{end.Offset - 2: true, end.Offset - 1: false, end.Offset: false} {
		picture := Picture{
			Partition: ledger.Partition{Topic: ledger.TopicID{1}}, Topic: rawTopic, Offset: -1,
			Row:    &ledger.PositionRow{Outputs: ledger.Outputs{cleanTopic: {0: at}}},
			Counts: map[string]int32{rawTopic: 1, cleanTopic: 1},
			Log:    func(string, int32) (start, last int64, known bool) { return end.Offset, end.Offset, true },
		}
		require.Equal(t, gone, picture.Stand().Gone != "", "the doctor, from %d", at)
	}
}

// emptyOutput deletes all there is of an output partition, as retention does.
func (b *bundle) emptyOutput(topic string, partition int32) {
	b.t.Helper()
	var all kadm.Offsets
	all.AddOffset(topic, partition, -1, -1) // to the high watermark
	rs, err := b.adm.DeleteRecords(b.t.Context(), all)
	require.NoError(b.t, err)
	require.NoError(b.t, rs.Error())
}

// What stops in order leaves a position whose outputs end behind the markers: all
// of them can be deleted while nothing runs, and another tool's offsets then hold
// nothing up.
func TestOutputsDeletedWhileStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stop := b.start()
	b.produce(0, "first")
	b.read(1) // the ends were read when nothing had come yet, and are for an hour
	b.produce(0, "a", "a")
	b.read(3)
	stop()
	b.leave()
	b.emptyOutput(cleanTopic, 0)
	b.emptyOutput("duplicates", 0)
	b.produce(0, "a", "b")
	b.setGroup(map[int32]int64{0: 0})
	b.start()
	require.Equal(t, map[string]int{"clean.as2 b": 1, "duplicates a": 1}, b.read(2))
}

func TestLearnersWaitForAPlace(t *testing.T) {
	t.Parallel()
	places := make(chan struct{}, 1)
	places <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &learner{p: part{place: place{rawTopic, 1}, claim: ledger.NewClaim()}}
	end := w.inTurn(ctx, places)
	require.ErrorIs(t, end.err, context.Canceled)
	require.Equal(t, w.p.place, end.place)
	require.Equal(t, w.p.claim, end.claim)
}
