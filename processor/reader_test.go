package processor

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
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
