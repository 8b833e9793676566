package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

const (
	group    = "dedup"
	rawTopic = "raw-ingest.a"
)

// patience is how long a lane waits for what must come, on a machine that is
// busy. What the filter has passed by is lost at once.
const patience = 3 * time.Minute

// lane is one broker with its topics and a filter on it that is broken again and
// again. Lanes run beside each other and share PostgreSQL and Redis, each with
// tenants of its own.
type lane struct {
	world   *world
	n       int
	ctx     context.Context //nolint:containedctx // the lane's life
	log     *slog.Logger
	cluster *kfake.Cluster
	cl      *kgo.Client
	aborts  *kgo.Client // transactions that come to nothing
	reader  *kgo.Client
	adm     *kadm.Client
	router  *topics.Router
	traps   traps
	scopes  []string
	learns  bool // PostgreSQL is put back now and then
	emptied bool // outputs were deleted

	rngMu sync.Mutex
	rng   *rand.Rand

	keys  int
	known []message
	raws  []string
	ids   map[string]ledger.TopicID
	books books
	next  map[[2]any]int64 // offsets of outputs to be read, by topic and partition

	lastOut map[[2]any]int64 // likewise of the last that were read
	cur     *process
	second  *process
}

func (w *world) lane(ctx context.Context, n int, seed uint64, learns bool) (l *lane, err error) {
	l = &lane{
		world: w, n: n, ctx: ctx, log: w.log.With("lane", n), rng: rand.New(rand.NewPCG(seed, uint64(n))),
		scopes: []string{fmt.Sprintf("lane%d:as2", n), fmt.Sprintf("lane%d:as4", n), fmt.Sprintf("lane%d:%s", n, watched)}, learns: learns,
		ids: map[string]ledger.TopicID{}, books: newBooks(), next: map[[2]any]int64{}, lastOut: map[[2]any]int64{},
	}
	if l.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "duplicates", "dead-letter")); err != nil {
		return nil, fmt.Errorf("starting a broker: %w", err)
	}
	seeds := kgo.SeedBrokers(l.cluster.ListenAddrs()...)
	manual := kgo.RecordPartitioner(kgo.ManualPartitioner())
	var errs [3]error
	l.cl, errs[0] = kgo.NewClient(seeds, manual, kgo.ProducerLinger(0))
	l.aborts, errs[1] = kgo.NewClient(seeds, manual, kgo.ProducerLinger(0), kgo.TransactionalID("sender"))
	l.reader, errs[2] = kgo.NewClient(seeds, kgo.ConsumeTopics("duplicates", "dead-letter"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond), kgo.KeepControlRecords())
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("opening clients: %w", err)
	}
	l.adm = kadm.NewClient(l.cl)
	l.router, err = topics.New(topics.Names{
		Raw: `^raw-ingest\.(.+)$`, Operator: "dedup-operator", Clean: "clean.$1", Duplicates: "duplicates", DeadLetter: "dead-letter",
	})
	if err != nil {
		return nil, fmt.Errorf("naming topics: %w", err)
	}
	if err := l.limit("dead-letter", deadMax); err != nil {
		return nil, err
	}
	return l, l.addRaw("a", partitions)
}

func (l *lane) limit(topic string, bytes int) error {
	rs, err := l.adm.AlterTopicConfigs(l.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new(fmt.Sprint(bytes))}}, topic)
	for _, r := range rs {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		return fmt.Errorf("setting the limit of %s: %w", topic, err)
	}
	return nil
}

// addRaw makes a raw topic and its clean one.
func (l *lane) addRaw(name string, partitions int32) error {
	raw, clean := "raw-ingest."+name, "clean."+name
	rs, err := l.adm.CreateTopics(l.ctx, partitions, 1, nil, raw, clean)
	for _, r := range rs {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		return fmt.Errorf("making topic %s: %w", raw, err)
	}
	l.ids[raw] = ledger.TopicID(rs[raw].ID)
	l.raws = append(l.raws, raw)
	l.reader.AddConsumeTopics(clean)
	return l.limit(clean, cleanMax)
}

func (l *lane) close() {
	for _, p := range []*process{l.cur, l.second} {
		if p != nil {
			p.kill()
			<-p.over
		}
	}
	l.cl.Close()
	l.aborts.Close()
	l.reader.Close()
	l.cluster.Close()
}

// report keeps a fault of the filter, or of this test.
func (l *lane) report(err error) { l.world.report(fmt.Errorf("lane %d: %w", l.n, err)) }

func (l *lane) number(n int) int {
	l.rngMu.Lock()
	defer l.rngMu.Unlock()
	return l.rng.IntN(n)
}

func (l *lane) chance(oneIn int) bool                     { return l.number(oneIn) == 0 }
func (l *lane) duration(most time.Duration) time.Duration { return time.Duration(l.number(int(most))) }

// send produces a batch as one, so that one poll gets it.
func (l *lane) send(topic string, ms []message) error {
	rs := make([]*kgo.Record, len(ms))
	for i := range ms {
		if topic != rawTopic {
			ms[i].partition = 0
		}
		rs[i] = ms[i].record(topic)
	}
	if err := l.cl.ProduceSync(l.ctx, rs...).FirstErr(); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	for i, m := range ms {
		l.books.book(topics.Place{Topic: topic, Partition: rs[i].Partition, Offset: rs[i].Offset}, m)
		if m.code == "" && windowOf(m.key) == longWindow {
			l.known = append(l.known, m)
		}
	}
	return nil
}

// sendNothing leaves control records and what nobody may see.
func (l *lane) sendNothing(topic string) error {
	if err := l.aborts.BeginTransaction(); err != nil {
		return fmt.Errorf("beginning a transaction that comes to nothing: %w", err)
	}
	m := message{scope: l.scopes[0], key: "never", value: "aborted"}
	err := l.aborts.ProduceSync(l.ctx, m.record(topic)).FirstErr()
	if err = errors.Join(err, l.aborts.EndTransaction(l.ctx, kgo.TryAbort)); err != nil {
		return fmt.Errorf("aborting a transaction: %w", err)
	}
	return nil
}

// ensure has a filter running, and the second where there is one: after one has
// ended the next begins, and ends what it left open.
func (l *lane) ensure() {
	for slot, p := range []**process{&l.cur, &l.second} {
		if *p != nil {
			select {
			case <-(*p).over:
				l.gone(*p)
				*p = l.start(slot)
			default:
			}
		}
	}
	if l.cur == nil {
		l.cur = l.start(0)
	}
}

// settle waits until every record has its output, starting a filter whenever the
// one before has ended.
func (l *lane) settle(what string) error {
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		l.ensure()
		if l.books.missing() == 0 {
			return nil
		}
		l.read(ctx, 20*time.Millisecond)
		select {
		case <-ctx.Done():
			return fmt.Errorf("stuck: %s: %s", what, l.books.lost())
		case <-look.C:
			if passed, err := l.passed(ctx); err == nil && passed {
				return fmt.Errorf("lost: %s: passed by: %s", what, l.books.lost())
			}
		default:
		}
	}
}

// passed reports whether what is committed, by the group's offset or by W, is
// behind all records that have no output, and all of the outputs was read.
func (l *lane) passed(ctx context.Context) (bool, error) {
	offsets, err := l.adm.FetchOffsets(ctx, group)
	if err = errors.Join(err, offsets.Error()); err != nil {
		return false, fmt.Errorf("reading the group's offsets: %w", err)
	}
	rows, err := l.positions(ctx)
	if err != nil {
		return false, err
	}
	for at := range l.books.open {
		o, _ := offsets.Lookup(at.Topic, at.Partition)
		if max(o.At, rows[ledger.Partition{Topic: l.ids[at.Topic], Partition: at.Partition}].w) <= at.Offset {
			return false, nil
		}
	}
	outputs := []string{"duplicates", "dead-letter"}
	for _, raw := range l.raws {
		outputs = append(outputs, "clean."+strings.TrimPrefix(raw, "raw-ingest."))
	}
	ends, err := l.adm.ListCommittedOffsets(ctx, outputs...)
	if err = errors.Join(err, ends.Error()); err != nil {
		return false, fmt.Errorf("reading the outputs' ends: %w", err)
	}
	for ctx.Err() == nil && l.unread(ends) && l.books.missing() > 0 {
		l.ensure()
		l.read(ctx, 20*time.Millisecond)
	}
	return ctx.Err() == nil && l.books.missing() > 0, ctx.Err()
}

func (l *lane) unread(ends kadm.ListedOffsets) (more bool) {
	ends.Each(func(o kadm.ListedOffset) {
		more = more || l.next[[2]any{o.Topic, o.Partition}] < o.Offset
	})
	return more
}

// read takes what is committed into the books.
func (l *lane) read(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fs := l.reader.PollFetches(ctx)
	fs.EachRecord(func(r *kgo.Record) {
		at := [2]any{r.Topic, r.Partition}
		if r.Offset < l.next[at] {
			return // a fetch was refused that was ours, and the reader began anew
		}
		l.next[at] = r.Offset + 1
		if r.Attrs.IsControl() {
			return
		}
		l.lastOut[at] = r.Offset
		if err := l.books.take(r); err != nil {
			l.report(err)
		}
	})
}
