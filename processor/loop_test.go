package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"dedupledger/ledger"
	"dedupledger/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	rawTopic   = "raw-ingest.as2"
	cleanTopic = "clean.as2"
	partitions = 3
)

// bench is one broker, one ledger and what is needed to run processors on them.
type bundle struct {
	t       *testing.T
	cluster *kfake.Cluster
	adm     *kadm.Client
	cl      *kgo.Client
	ledger  *memLedger
	id      uuid.UUID
	router  *topics.Router
	opts    []kgo.Opt // of the tests' own clients
	runs    int
}

// headerKey takes the key from the header dedup-key, so that these tests need
// no rules.
type headerKey struct{}

func (k headerKey) Key(s topics.Scope, _ []byte, header func(string, int) ([]byte, bool)) ledger.Keyed {
	v, ok := header(topics.HeaderKey, 0)
	if !ok {
		return ledger.Keyed{Code: "key.not_found", HashMode: ledger.HashRaw, Observe: k.Observes(s)}
	}
	aliases, _ := header("x-alias", 0)
	return ledger.Keyed{
		Key:      ledger.Key{Scope: s.String(), Key: "hdr:" + string(v), Window: time.Hour},
		Aliases:  strings.Fields(string(aliases)),
		HashMode: ledger.HashRaw, Observe: k.Observes(s), NoPayload: s.Flow == "bare",
	}
}

// Observes says so of the flow "watched".
func (headerKey) Observes(s topics.Scope) bool { return s.Flow == "watched" }

func (headerKey) LedgerScope(s topics.Scope, _ string) string { return s.String() }

func setup(t *testing.T) *bundle { return setupWith(t, nil) }

func setupWith(t *testing.T, clients []kgo.Opt, cluster ...kfake.Opt) *bundle {
	t.Helper()
	c, err := kfake.NewCluster(append(cluster, kfake.NumBrokers(1),
		kfake.SeedTopics(partitions, rawTopic, cleanTopic, "duplicates", "dead-letter"))...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	cl, err := kgo.NewClient(append(clients, kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	r, err := topics.New(topics.Names{
		Raw: `^raw-ingest\.(.+)$`, Operator: "dedup-operator", Clean: "clean.$1", Duplicates: "duplicates", DeadLetter: "dead-letter",
	})
	require.NoError(t, err)
	return &bundle{t: t, opts: clients, cluster: c, cl: cl, adm: kadm.NewClient(cl), ledger: newMemLedger(), id: uuid.New(), router: r}
}

// config is a processor's on the bundle's broker and ledger.
func (b *bundle) config() Config {
	level := slog.LevelWarn
	if os.Getenv("DEDUP_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	return Config{
		Brokers: b.cluster.ListenAddrs(), Group: "dedup", Sessions: 1, Static: true,
		Rebalance: 5 * time.Second, Transaction: 10 * time.Second, Session: 6 * time.Second,
		FetchMax: 16 << 20, Compression: "lz4", MaxRecord: 1 << 20, BatchRecords: 200, ChunkRecords: 50,
		BatchWait: 5 * time.Millisecond, StallExit: time.Minute, ShutdownGrace: 10 * time.Second,
		Router: b.router, Keyer: headerKey{},
		Ledger:   Ledger{ID: b.id, Registrar: b.ledger, Positions: b.ledger, Memory: b.ledger},
		Log:      slog.New(slog.NewTextHandler(b.t.Output(), &slog.HandlerOptions{Level: level})),
		Registry: prometheus.NewRegistry(),
	}
}

// start runs a processor; the returned function stops it and waits.
func (b *bundle) start(change ...func(*Config)) func() {
	b.t.Helper()
	cfg := b.config()
	for _, f := range change {
		f(&cfg)
	}
	b.runs++
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	p := New(cfg)
	go func() { done <- p.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(b.t, <-done)
	}
	b.t.Cleanup(stop)
	return stop
}

// produce sends records by their texts: key~aliases=payload.
func (b *bundle) produce(partition int32, keys ...string) {
	b.t.Helper()
	var rs []*kgo.Record
	for _, k := range keys {
		key, value, _ := strings.Cut(k, "=")
		key, aliases, _ := strings.Cut(key, "~")
		rs = append(rs, &kgo.Record{
			Topic: rawTopic, Partition: partition, Key: []byte("acme:as2"), Value: []byte("payload " + value),
			Headers: []kgo.RecordHeader{{Key: topics.HeaderKey, Value: []byte(key)}, {Key: "x-alias", Value: []byte(aliases)}},
		})
	}
	require.NoError(b.t, b.cl.ProduceSync(b.t.Context(), rs...).FirstErr())
}

// read returns n committed outputs of all three topics, as "topic key", in no
// order of topics.
func (b *bundle) read(n int) map[string]int {
	b.t.Helper()
	got := map[string]int{}
	for _, r := range b.records(n) {
		k, _ := topics.Last(r.Headers, topics.HeaderKey)
		got[r.Topic+" "+strings.TrimPrefix(string(k), "hdr:")]++
	}
	return got
}

func (b *bundle) records(n int) []*kgo.Record {
	b.t.Helper()
	cl, err := kgo.NewClient(append(b.opts, kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.ConsumeTopics(cleanTopic, "duplicates", "dead-letter"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))...)
	require.NoError(b.t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeoutCause(b.t.Context(), 30*time.Second, errors.New("outputs did not come"))
	defer cancel()
	var rs []*kgo.Record
	for len(rs) < n && ctx.Err() == nil {
		rs = append(rs, cl.PollFetches(ctx).Records()...)
	}
	require.Len(b.t, rs, n, "%v", context.Cause(ctx))
	return rs
}

func (b *bundle) setGroup(offsets map[int32]int64) {
	b.t.Helper()
	var os kadm.Offsets
	for p, o := range offsets {
		os.AddOffset(rawTopic, p, o, -1)
	}
	rs, err := b.adm.CommitOffsets(b.t.Context(), "dedup", os)
	require.NoError(b.t, err)
	require.NoError(b.t, rs.Error())
}

// leave takes the static members out, so that the group is empty.
func (b *bundle) leave() {
	b.t.Helper()
	_, err := b.adm.LeaveGroup(b.t.Context(), kadm.LeaveGroup("dedup").InstanceIDs("dedup-0-0"))
	require.NoError(b.t, err)
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a", "b", "a", "a=changed")
	b.produce(1, "b", "c")
	b.start()
	got := b.read(6)
	require.Equal(t, 3, got["clean.as2 a"]+got["clean.as2 b"]+got["clean.as2 c"])
	require.Equal(t, 3, got["duplicates a"]+got["duplicates b"])
}

func TestRestartGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a", "b")
	stop := b.start()
	b.read(2)
	stop()
	b.produce(0, "a", "d")
	b.start()
	got := b.read(4)
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 d": 1, "duplicates a": 1}, got)
}

// Another tool's offsets are never obeyed, backwards or forwards.
func TestForeignOffsets(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]int64{"back": 0, "to where it was": 3, "forward": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.produce(0, "a", "b", "a")
			stop := b.start()
			b.read(3)
			stop()
			b.leave()
			b.produce(0, "c", "d", "e")
			b.setGroup(map[int32]int64{0: to})
			b.start()
			got := b.read(6)
			require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 c": 1, "clean.as2 d": 1, "clean.as2 e": 1, "duplicates a": 1}, got)
		})
	}
}

// A ledger that lost its last commits learns them from the outputs.
func TestLedgerBehind(t *testing.T) {
	t.Parallel()
	for _, forget := range []bool{false, true} {
		t.Run(fmt.Sprintf("everything forgotten=%v", forget), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.produce(0, "a", "b")
			restore := b.ledger.copyState()
			stop := b.start()
			b.read(2)
			if !forget {
				stop()
				restore = b.ledger.copyState()
				stop = b.start()
			}
			b.produce(0, "c", "a", "d")
			b.read(5)
			stop()
			restore()
			b.produce(0, "c", "a", "e")
			b.start()
			got := b.read(8)
			require.Equal(t, map[string]int{
				"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 c": 1, "clean.as2 d": 1, "clean.as2 e": 1,
				"duplicates a": 2, "duplicates c": 1,
			}, got)
			require.Equal(t, 5, b.ledger.count(ledger.New))
			require.Equal(t, 3, b.ledger.count(ledger.Seen))
			require.Positive(t, b.ledger.lessons)
		})
	}
}

// While it runs: the next chunk is refused, the rule applied again at once.
func TestLedgerPutBackUnderARunningFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a", "b")
	b.start()
	b.read(2)
	restore := b.ledger.copyState()
	b.produce(0, "c", "d")
	b.read(4)
	restore()
	b.produce(0, "d", "e")
	got := b.read(6)
	require.Equal(t, map[string]int{
		"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 c": 1, "clean.as2 d": 1, "clean.as2 e": 1, "duplicates d": 1,
	}, got)
}

// One record that an output refuses goes to dead-letter, its neighbours to
// clean.
// Fault card: F14.
func TestRefusedRecordIsIsolated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new("2000")}}, cleanTopic)
	require.NoError(t, err)
	keys := []string{"a", "b", "big=" + strings.Repeat("x", 3000), "c", "big", "d"}
	b.produce(0, keys...)
	b.start(func(c *Config) {
		c.Compression, c.ClientOptions = "none", []kgo.Opt{kgo.ProducerBatchMaxBytes(1 << 20)}
	})
	got := b.read(6)
	require.Equal(t, map[string]int{
		"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 c": 1, "clean.as2 d": 1, "dead-letter big": 1, "clean.as2 big": 1,
	}, got)
	require.Equal(t, 1, b.ledger.count(ledger.Invalid))
}

// A ledger that rejects one record's data gets the chunk in halves.
func TestLedgerRejectsOneRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ledger.fail = func(c *ledger.Chunk) error {
		for i := range c.Registrations {
			if len(c.Registrations[i].Keys) > 0 && c.Registrations[i].Keys[0].Key == "hdr:bad" {
				return ledger.ErrRejected
			}
		}
		return nil
	}
	b.produce(0, "a", "b", "bad", "c")
	b.start()
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 c": 1, "dead-letter ": 1}, b.read(4))
}

// Two groups on one raw topic: the second is refused.
func TestOtherGroupIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.produce(0, "a")
	stop := b.start()
	b.read(1)
	stop()
	held := make(chan string, 16)
	b.start(func(c *Config) {
		c.Group = "another"
		c.Log = slog.New(&heldWatcher{held})
	})
	require.Equal(t, heldGroup, <-held)
	b.read(1)
}

// heldWatcher hands over the reasons of held partitions.
type heldWatcher struct{ reasons chan string }

func (h *heldWatcher) Enabled(context.Context, slog.Level) bool { return true }
func (h *heldWatcher) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *heldWatcher) WithGroup(string) slog.Handler            { return h }
func (h *heldWatcher) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			select {
			case h.reasons <- a.Value.String():
			default:
			}
		}
		return true
	})
	return nil
}
