package processor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

const (
	idlePoll     = 500 * time.Millisecond // how long an empty poll waits
	settlingPoll = 50 * time.Millisecond  // likewise while partitions wait for the rule
	retryMin     = 100 * time.Millisecond
	retryMax     = 5 * time.Second
	raiseEvery   = time.Hour       // far below any retention of outputs
	lastLook     = 2 * time.Second // at most, of a stop, for the outputs' ends
)

// session is one loop with its own client, group member and transactional id.
type session struct {
	proc  *Processor
	cfg   *Config
	m     *metrics
	state *sessionState
	log   *slog.Logger
	index int

	kafka  *client
	layout *topics.Layout
	routes map[string]*topics.Route   // by raw topic
	build  map[string]*topics.Builder // likewise
	ids    map[string]ledger.TopicID  // the incarnation this session's client reads
	parts  map[place]*part
	batch  batch             // in hand
	scopes map[string]scoped // met last, by their text

	joined bool // the group has told once what is ours: until then it may any moment

	lessons  context.Context //nolint:containedctx // the life of the learners this session starts
	learners sync.WaitGroup
	learned  chan lessonEnd

	rejected map[ledger.Origin]rejection // records an output refused, until they are committed
	narrow   narrowing
	failures int             // consecutive, for the back-off
	answered <-chan struct{} // closed when the ledger has answered any session; nil: nothing is postponed
	denied   bool            // PostgreSQL: a right was missing when it was last needed
	raised   time.Time       // when the outputs' ends were last read
}

// run is one life of a session: until stop, or an error that wants the session
// rebuilt. work outlives stop by the shutdown grace, so that the batch in hand
// is finished.
func (s *session) run(stop, work context.Context) error {
	var end context.CancelFunc
	s.lessons, end = context.WithCancel(work)
	defer s.learners.Wait()
	defer end()
	for stop.Err() == nil {
		if err := s.turn(stop, work); err != nil {
			return err
		}
	}
	s.at("stop begins")
	s.raiseLast(work)
	err := s.flush(work, true)
	s.at("stop done")
	return err
}

// turn is one round of the loop.
func (s *session) turn(stop, work context.Context) error {
	s.state.moved()
	s.at("turn begins")
	if err := s.takeEvents(work); err != nil {
		return err
	}
	s.wake()
	if err := s.settle(work); err != nil {
		s.postpone(err)
		if err := fatalOnly(err); err != nil {
			return err
		}
	}
	s.tellHeld(work)
	b, err := s.poll(stop)
	if err != nil {
		return err
	}
	if recorded, err := s.recordGaps(stop, work); !recorded {
		return err
	}
	if len(b.items) == 0 {
		return s.idle(work)
	}
	return s.process(stop, work, b)
}

// takeEvents follows assignments and revocations, and takes what learners
// brought.
func (s *session) takeEvents(work context.Context) error {
	events, dirty, joined := s.kafka.take()
	s.joined = joined
	if dirty {
		s.m.rebalanced()
		s.at("revoke seen")
		s.flushQuietly(work, events)
		s.at("revoke flushed")
		if err := s.kafka.clearRevoked(); err != nil {
			return err
		}
		s.at("revoke cleared")
		s.resync("rebalance")
	}
	for _, e := range events {
		s.forget(e.place)
		if e.gained {
			s.parts[e.place] = &part{place: e.place, phase: pending}
		}
	}
	if len(s.parts) == 0 {
		s.ledgerAnswered() // nothing is asked any more
	}
	for {
		select {
		case e := <-s.learned:
			s.endLesson(work, e)
		default:
			s.state.note(s.parts, joined)
			if len(events) > 0 {
				s.m.partitions(s.index, s.parts)
			}
			s.tellIdle(work)
			return nil
		}
	}
}

func (s *session) forget(w place) {
	if p := s.parts[w]; p != nil {
		if p.stopLearning != nil {
			p.stopLearning()
		}
		s.narrow.forget(p)
		s.m.ages.forget(w)
		s.m.behind(w, 0)
		delete(s.parts, w)
	}
}

// leave drops the series of what this session had: another may have it next.
func (s *session) leave() {
	for w := range s.parts {
		s.forget(w)
	}
	s.m.partitions(s.index, s.parts)
}

// resync applies the position rule to every partition that was running: after
// anything but a commit the client's own idea of the position is not trusted.
func (s *session) resync(why string) {
	var ps []*part
	for _, p := range s.parts {
		if p.phase == running {
			p.retry(0)
			ps = append(ps, p)
		}
	}
	s.kafka.pause(ps)
	s.at("position in doubt")
	if len(ps) > 0 {
		s.log.Debug("positions are read anew", "why", why, "partitions", len(ps))
	}
}

// poll reads a batch of the partitions that run.
func (s *session) poll(stop context.Context) (*batch, error) {
	idle := idlePoll
	if !s.joined || len(s.waiting()) > 0 || s.anyPending() {
		idle = settlingPoll
	}
	began := time.Now()
	f := s.kafka.poll(stop, s.narrow.limit(s.cfg.BatchRecords), idle, s.cfg.BatchWait)
	if f.closed {
		return nil, errors.New("the client was closed")
	}
	b := &s.batch
	b.reset(len(f.records))
	for w, end := range f.ends {
		if p := s.parts[w]; p != nil {
			p.logEnd = end
		}
	}
	for _, r := range f.records {
		s.admit(b, r)
	}
	// Behind the records: those before one that cannot be read came with its error.
	if err := s.fetchErrors(f.errs); err != nil {
		return nil, err
	}
	if len(b.items) > 0 {
		s.at("batch polled")
		s.m.stage("poll", time.Since(began))
		s.m.ages.inHand(b)
	}
	return b, nil
}

// admit takes a polled record into the batch, unless its partition does not
// run, its topic is another incarnation, or it lies below what is committed.
func (s *session) admit(b *batch, r polledRecord) {
	p := s.parts[place{r.rec.Topic, r.rec.Partition}]
	if p == nil || p.phase != running {
		return
	}
	if r.topicID != p.id.Topic {
		p.retry(settleWait)
		s.kafka.pause([]*part{p})
		s.log.Warn("the topic was created again under the same name", "topic", p.topic, "partition", p.partition)
		return
	}
	p.unread = unread{}
	o := ledger.Origin{
		Gate: ledger.GateKafka, Topic: p.id.Topic, Partition: p.partition,
		Epoch: max(r.rec.LeaderEpoch, 0), Offset: r.rec.Offset,
	}
	if gone, cut := p.cutBefore(o.At()); cut {
		p.cut = append(p.cut, gone)
	}
	if r.rec.Attrs.IsControl() {
		p.passed = p.passed.Max(o.Next())
		return
	}
	if below(o.At(), p.w) {
		s.m.belowCommitted(p.topic)
		return
	}
	p.next = p.next.Max(o.Next())
	s.decode(b, b.add(p, r.rec), r.rec, o)
}

// process takes a batch from registration to commit.
func (s *session) process(stop, work context.Context, b *batch) error {
	s.m.batchRecords(len(b.items))
	ctx, cancel := s.kafka.during(work)
	defer cancel()
	began := time.Now()
	if err := s.register(ctx, b); err != nil {
		s.resync("a batch was not registered")
		if errors.Is(err, context.Canceled) {
			return nil // revoked meanwhile: its new owner reads it
		}
		s.afterFailure(stop, "registering a batch", err)
		return fatalOnly(err)
	}
	b.registered = time.Now()
	s.m.stage("register", b.registered.Sub(began))
	s.ledgerAnswered()
	s.at("batch registered")
	return s.commit(work, b)
}

// commit produces the outputs and commits them with the offsets.
func (s *session) commit(work context.Context, b *batch) error {
	outs, held, err := s.complete(work, b)
	switch {
	case held:
		return nil
	case err != nil:
		s.resync("outputs were not looked up")
		s.afterFailure(work, "looking for outputs", err)
		return fatalOnly(err)
	}
	ctx, cancel := s.kafka.during(work)
	ended, err := s.awaitEnded(ctx, placesOf(outs))
	cancel()
	if !ended {
		s.resync("a transaction of before has not ended")
		if err != nil && !errors.Is(err, context.Canceled) {
			s.afterFailure(work, "looking for the end of the transaction before", err)
		}
		return fatalOnly(err)
	}
	marks := s.marks(b)
	s.at("outputs built")
	o, dataErr, err := s.kafka.transact(work, outs, marks)
	b.committed = time.Now()
	s.m.stage("commit", b.committed.Sub(b.registered))
	var denied *deniedError
	switch {
	case o == committed:
		s.failures = 0
		s.at("commit known")
		s.confirm(b, outs)
		s.at("batch confirmed")
		return nil
	case o == broken:
		return err
	case dataErr != nil:
		s.resync("an output refused a record")
		return s.isolate(work, b, dataErr)
	case errors.As(err, &denied):
		s.resync("an output topic may not be written to")
		s.holdDenied(b, outs, s.lackedOn(work, denied.topics))
		return nil
	default:
		s.waitAfterAbort(work, err)
		// Not known to be aborted: EndTxn may have been applied although its
		// answer was an error. The coordinator says where the group stands.
		s.resync("a transaction did not report its commit")
		return nil
	}
}

// waitAfterAbort slows down what fails again and again. The first abort without
// an error is a rebalance, as a rule, and the batch may come again at once; a
// coordinator that refuses the offsets each time would be asked, with the
// ledger, as fast as both answer.
func (s *session) waitAfterAbort(ctx context.Context, err error) {
	if err == nil && s.failures == 0 {
		s.failures++
		return
	}
	why := "the transaction was aborted"
	if err != nil {
		why = err.Error()
		s.log.Warn("a transaction was not committed; the batch comes again", "error", err)
	}
	s.state.notCommitting(why)
	s.backOff(ctx)
}

// marks is what the transaction commits for each partition of the batch.
func (s *session) marks(b *batch) map[place]mark {
	m := make(map[place]mark, 8)
	for p, end := range b.ends() {
		m[p.place] = mark{topic: p.id.Topic, end: end, metadata: topics.Marker{
			Ledger: s.cfg.Ledger.ID, Topic: p.id.Topic, Seq: p.seq, Offset: end.Offset,
		}.String()}
	}
	return m
}

// confirm is all that may only be said after the commit.
func (s *session) confirm(b *batch, outs []*kgo.Record) {
	ends := make(map[*part]ledger.Outputs, 8)
	for i := range b.items {
		it, out := &b.items[i], outs[i]
		o := ends[it.part]
		if o == nil {
			o = ledger.Outputs{}
			ends[it.part] = o
		}
		if o[out.Topic] == nil {
			o[out.Topic] = map[int32]int64{}
		}
		o[out.Topic][out.Partition] = max(o[out.Topic][out.Partition], out.Offset+1)
		delete(s.rejected, it.reg.Origin)
	}
	for p, end := range b.ends() {
		p.committed(end, ends[p])
	}
	s.narrow.committed(b)
	s.m.committed(s.index, b, outs)
	s.m.ages.done(b)
	s.state.committed()
	s.log.Debug("batch committed", "records", len(b.items), "partitions", len(ends),
		"register", b.registered.Sub(b.polled), "commit", b.committed.Sub(b.registered))
	s.at("position moved")
	s.cfg.Ledger.Memory.Confirm(ledger.FactsOf(b.regs, b.results), b.clock)
}

func (s *session) anyPending() bool {
	for _, p := range s.parts {
		if p.phase == pending {
			return true
		}
	}
	return false
}

// placeOf names a record in logs.
func (s *session) placeOf(it *item) string {
	return topics.Place{Topic: it.part.topic, Partition: it.part.partition, Offset: it.rec.Offset}.String()
}
