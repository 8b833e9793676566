package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/plugin/kprom"
	"github.com/twmb/franz-go/plugin/kslog"

	"dedupledger/ledger"
)

// client is the session's Kafka client with what its callbacks left for the
// session's goroutine. This file alone calls kgo.
type client struct {
	faultPoints
	gts      *kgo.GroupTransactSession
	adm      *kadm.Client
	instance *string       // of a static member; nil: it is none
	deliver  time.Duration // within which the outputs of a batch are produced, or not at all
	offsets  int           // partitions of the groups' offsets; 0: not asked yet, -1: not to be seen

	mu     sync.Mutex
	events []event            // in the order they came
	dirty  bool               // a revoke or loss came: the next End would abort
	joined bool               // the group has assigned once, be it nothing
	cancel context.CancelFunc // of the batch in hand
	mine   map[place]bool     // gained and not lost, as the events tell
	synced map[place]bool     // the whole of the last assignment; nil: none yet
}

// event is a partition gained or lost.
type event struct {
	place
	gained bool
}

// openClient connects, joins nothing yet, and fences whoever had this
// transactional id. With the client's own, lazy request for a producer id
//
//	a process dies between TxnOffsetCommit and EndTxn
//	its partitions go to sessions of other ids, which find UNSTABLE_OFFSET_COMMIT
//	its successor is given no partition: it never produces, so it never fences
//
// and those partitions would stand still for the transaction timeout.
func (p *Processor) openClient(ctx context.Context, i int, maxBatch int32) (*client, error) {
	c := &client{faultPoints: p.cfg.faultPoints, deliver: p.cfg.Transaction}
	gts, err := kgo.NewGroupTransactSession(p.clientOptions(i, maxBatch, c)...)
	if err != nil {
		return nil, fmt.Errorf("opening client session %d: %w", i, err)
	}
	c.gts, c.adm = gts, kadm.NewClient(gts.Client())
	p.at("client made")
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Transaction, errors.New("fencing the predecessor timed out"))
	defer cancel()
	if _, _, err := gts.Client().ProducerID(ctx); err != nil {
		gts.CloseAllowingRebalance()
		return nil, fmt.Errorf("fencing transactional id %s: %w", p.transactionalID(i), err)
	}
	p.at("predecessor fenced")
	return c, nil
}

// TransactionalID is that of the ith session of a slot, and its static member's
// instance id.
func TransactionalID(group string, slot, i int) string {
	return fmt.Sprintf("%s-%d-%d", group, slot, i)
}

func (p *Processor) transactionalID(i int) string {
	return TransactionalID(p.cfg.Group, int(p.slot.Load()), i)
}

func (p *Processor) clientOptions(i int, maxBatch int32, c *client) []kgo.Opt {
	id := p.transactionalID(i)
	opts := []kgo.Opt{
		kgo.SeedBrokers(p.cfg.Brokers...),
		kgo.ClientID("dedup-ledger-" + id),
		kgo.WithLogger(libraryLog{kslog.New(p.cfg.Log.With("component", "kafka", "session", i))}),
		kgo.ConsumerGroup(p.cfg.Group),
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(p.cfg.Transaction),
		kgo.RebalanceTimeout(p.cfg.Rebalance),
		kgo.SessionTimeout(p.cfg.Session),
		kgo.Balancers(observed{kgo.CooperativeStickyBalancer(), c}),
		kgo.ConsumeRegex(),
		kgo.ConsumeTopics(p.cfg.Router.Pattern()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // a position moves over them too (part.passed)
		// Where a partition starts is said by SetOffsets, after the position
		// rule; an offset out of range is an error that applies the rule again,
		// never a silent jump.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(p.cfg.FetchMax),
		// What is fetched waits decompressed: with a backlog on all partitions
		// this, and not FetchMax, is what a session's memory goes by. A larger
		// record still comes, alone (KIP-74).
		kgo.FetchMaxPartitionBytes(min(p.cfg.FetchMax, 512<<10)),
		kgo.FetchMaxWait(250 * time.Millisecond),
		// A raw topic that is new is found by the next look, and the group must
		// share it out: both within 30 s.
		kgo.MetadataMaxAge(20 * time.Second),
		kgo.AlwaysRetryEOF(),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(maxBatch),
		compression(p.cfg.Compression),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.OnPartitionsAssigned(c.onAssigned),
		kgo.OnPartitionsRevoked(c.onRevoked),
		kgo.OnPartitionsLost(c.onLost),
	}
	// One set of kafka_* metrics per client: it goes when the client closes, so
	// a rebuilt session can register its own.
	opts = append(opts, kgo.WithHooks(kprom.NewMetrics("kafka", kprom.Registerer(p.cfg.Registry), kprom.WithClientLabel())))
	if p.cfg.Static {
		c.instance = &id
		opts = append(opts, kgo.InstanceID(id))
	}
	return append(opts, p.cfg.ClientOptions...)
}

func compression(name string) kgo.Opt {
	switch name {
	case "none":
		return kgo.ProducerBatchCompression(kgo.NoCompression())
	case "snappy":
		return kgo.ProducerBatchCompression(kgo.SnappyCompression())
	case "zstd":
		return kgo.ProducerBatchCompression(kgo.ZstdCompression())
	default:
		return kgo.WithCompressor(newLZ4())
	}
}

// clearRevoked ends an empty transaction. The session type remembers a revoke
// until the next End and would abort the next, innocent transaction
// (franz-go#754). No broker is asked. The client then stands at its own cached
// offsets, so every partition must be sought anew.
func (c *client) clearRevoked() error {
	if err := c.gts.Begin(); err != nil {
		return fmt.Errorf("beginning the empty transaction after a rebalance: %w", err)
	}
	if _, err := c.gts.End(context.Background(), kgo.TryAbort); err != nil {
		return fmt.Errorf("ending the empty transaction after a rebalance: %w", err)
	}
	return nil
}

// seek lets partitions be consumed from their positions.
func (c *client) seek(parts []*part) {
	set := make(map[string]map[int32]kgo.EpochOffset)
	resume := make(map[string][]int32)
	for _, p := range parts {
		if set[p.topic] == nil {
			set[p.topic] = map[int32]kgo.EpochOffset{}
		}
		set[p.topic][p.partition] = kgo.EpochOffset{Epoch: p.next.Epoch, Offset: p.next.Offset}
		resume[p.topic] = append(resume[p.topic], p.partition)
	}
	c.gts.Client().SetOffsets(set)
	c.at("offsets sought")
	c.gts.Client().ResumeFetchPartitions(resume)
}

// pause keeps partitions from being fetched.
func (c *client) pause(parts []*part) {
	m := make(map[string][]int32)
	for _, p := range parts {
		m[p.topic] = append(m[p.topic], p.partition)
	}
	if len(m) > 0 {
		c.gts.Client().PauseFetchPartitions(m)
	}
}

// fetched is what one poll brought.
type fetched struct {
	records []polledRecord
	ends    map[place]int64 // last stable offsets, where records came
	errs    []kgo.FetchError
	closed  bool
}

type polledRecord struct {
	topicID ledger.TopicID
	rec     *kgo.Record
}

// poll waits at most idle for a first record, then at most gather for max.
func (c *client) poll(ctx context.Context, maxRecords int, idle, gather time.Duration) fetched {
	var f fetched
	c.pollOnce(ctx, &f, maxRecords, idle)
	if len(f.records) == 0 || f.closed {
		return f
	}
	for end := time.Now().Add(gather); len(f.records) < maxRecords && ctx.Err() == nil; {
		left := time.Until(end)
		if left <= 0 {
			break
		}
		c.pollOnce(ctx, &f, maxRecords-len(f.records), left)
	}
	return f
}

func (c *client) pollOnce(ctx context.Context, f *fetched, maxRecords int, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fs := c.gts.PollRecords(ctx, maxRecords)
	f.closed = fs.IsClientClosed()
	for _, e := range fs.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
			f.errs = append(f.errs, e)
		}
	}
	fs.EachTopic(func(t kgo.FetchTopic) {
		t.EachPartition(func(p kgo.FetchPartition) {
			if f.ends == nil {
				f.ends = map[place]int64{}
			}
			f.ends[place{t.Topic, p.Partition}] = p.LastStableOffset
			for _, r := range p.Records {
				f.records = append(f.records, polledRecord{ledger.TopicID(t.TopicID), r})
			}
		})
	})
}

// outcome is how a transaction ended.
type outcome uint8

const (
	committed outcome = iota + 1 // (true, nil): the only commit
	unknown                      // (false, nil): NOT known to be aborted; ask the coordinator
	broken                       // an error: rebuild the session, then ask
)

// transact produces the records and commits them with the offsets in marks, in
// one transaction. dataErr is a broker's or the client's refusal of a record.
// Producing ends with work, so that a stop does not wait for a broker that is
// away; what is begun beyond that is ended.
func (c *client) transact(work context.Context, outs []*kgo.Record, marks map[place]mark) (o outcome, dataErr, err error) {
	if err := c.gts.Begin(); err != nil {
		return broken, nil, fmt.Errorf("beginning a transaction: %w", err)
	}
	c.at("transaction begun")
	bg := context.Background() // a transaction is never left half ended
	// Not the client's delivery timeout: that counts from the record's own time,
	// and an output keeps the time of its raw record. What had waited longer
	// than the timeout in raw, as after any outage, could never be produced.
	within, cancel := context.WithTimeout(work, c.deliver)
	defer cancel()
	first := kgo.AbortingFirstErrPromise(c.gts.Client())
	var refused refusals
	for _, r := range outs {
		c.gts.Produce(within, r, refused.promise(first.Promise()))
		c.at("output handed over")
	}
	if err := c.gts.Client().Flush(bg); err != nil {
		return broken, nil, fmt.Errorf("flushing outputs: %w", err)
	}
	produced := first.Err()
	c.at("outputs produced")
	ctx := kgo.PreTxnCommitFnContext(bg, func(req *kmsg.TxnOffsetCommitRequest) error {
		stamp(req, marks)
		return nil
	})
	ok, err := c.gts.End(ctx, produced == nil)
	c.at("transaction ended")
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		// A raw topic's offset was refused, and then the transaction aborted. The
		// position rule finds out whose.
		return unknown, nil, fmt.Errorf("committing offsets: %w", err)
	case err != nil:
		return broken, nil, fmt.Errorf("ending the transaction: %w", err)
	case ok:
		return committed, nil, nil
	case produced != nil && isDataError(produced):
		return unknown, produced, nil
	case len(refused.topics) > 0:
		return unknown, nil, &deniedError{topics: refused.topics, err: produced}
	case produced != nil && errors.Is(produced, kerr.UnknownTopicID):
		return broken, nil, fmt.Errorf("an output topic was created again: %w", produced)
	case produced != nil:
		return unknown, nil, fmt.Errorf("producing: %w", produced)
	default:
		return unknown, nil, nil
	}
}

// mark is what is committed for one raw partition.
type mark struct {
	topic    ledger.TopicID
	end      ledger.Position
	metadata string
}

// stamp makes a commit say exactly the batch. The client would commit its own
// idea of everything polled, without marker, also of partitions that were sought
// but not consumed, and would leave out one whose batch ends at the offset it
// holds for committed: another tool can have set the group there. A commit
// without offsets is not checked against the group's generation, so a session
// that was replaced meanwhile could still commit its outputs.
func stamp(req *kmsg.TxnOffsetCommitRequest, marks map[place]mark) {
	req.Topics = nil
	index := make(map[string]int, len(marks))
	for w, m := range marks {
		i, ok := index[w.topic]
		if !ok {
			i = len(req.Topics)
			index[w.topic] = i
			t := kmsg.NewTxnOffsetCommitRequestTopic()
			t.Topic, t.TopicID = w.topic, m.topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = w.partition, m.end.Offset, m.end.Epoch, new(m.metadata)
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
}

// isDataError tells a record's own fault from the cluster's (ARCHITECTURE §5).
func isDataError(err error) bool {
	for _, e := range []error{
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTimestamp,
		kerr.InvalidRecord, kerr.UnsupportedForMessageFormat,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// isFatal tells what no rebuild can mend: another process has this identity, or
// a setting is refused. A login that is refused is not among it: while the filter
// runs it may be a password under rotation.
func isFatal(err error) bool {
	for _, e := range []error{
		kerr.FencedInstanceID,
		kerr.InvalidTransactionTimeout, kerr.InvalidSessionTimeout,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// close ends the client; a static member keeps its partitions for its return.
func (c *client) close() { c.gts.CloseAllowingRebalance() }
