package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// errOutputsGone says that retention has taken outputs that must be read.
var errOutputsGone = errors.New("outputs are gone")

const learnProgress = 5 * time.Second

// maxLearners bounds the learners of a process that read at the same time: after
// a failover of PostgreSQL all its partitions learn at once, and each reader has
// a client with buffers of its own.
const maxLearners = 4

// lesson is what is to be read back of one partition.
type lesson struct {
	from   ledger.Position // W: outputs of records at or behind it
	to     ledger.Position // the group's offset; unset when verifying
	seq    int64           // of its marker
	verify bool            // not ours: up to the highest committed origin there is
	outs   ledger.Outputs  // where the outputs of W end
	report func()          // called by the loop if anything was learned, or nil
}

// lessonEnd is what a learner brings back.
type lessonEnd struct {
	place
	claim ledger.Claim
	err   error
	at    ledger.Position // start here
	seq   int64
	d     ledger.Position
	outs  ledger.Outputs

	report func() // of the lesson, if anything was learned
}

// told is one committed output of the raw partition.
type told struct {
	learned ledger.Learned
	origin  ledger.Position
	at      int64 // its own offset in the output partition
}

// learner reads one partition's outputs back, beside the session's loop: other
// partitions go on meanwhile. It holds copies; the part stays the loop's.
type learner struct {
	s      *session
	p      part
	l      lesson
	epochs epochEnds
	latest int32
	places []place
	counts partitionCounts

	seq   int64
	d     ledger.Position
	last  ledger.Position
	batch []ledger.Learned
	gaps  []ledger.Range
	count int64

	raw      *rawRecords // where records without an output are looked for, or nil
	logStart int64       // of raw
	logEnd   int64
	taken    bool // retention has taken outputs of before, and a person has said to go on
}

// learn starts a learner; the loop takes its end from s.learned.
func (s *session) learn(p *part, l lesson) {
	ctx, cancel := context.WithCancel(s.lessons)
	p.phase, p.stopLearning = learning, cancel
	w := &learner{
		s: s, p: *p, l: l, places: s.learnPlaces(p, l.outs), counts: s.counts(p), seq: p.seq, d: p.d, last: l.from,
		taken: l.outs[p.topic][ledger.OutputsTaken] > 0,
	}
	s.learners.Go(func() {
		defer cancel()
		select {
		case s.learned <- w.inTurn(ctx, s.proc.learners):
		case <-s.lessons.Done():
		}
	})
}

// learnPlaces are the places where outputs behind W can lie: those of the
// present partition counts, those that W's ends name, and all of a topic whose
// count, or that of raw, was another then. What goes by partition now may have
// gone by key meanwhile.
func (s *session) learnPlaces(p *part, outs ledger.Outputs) []place {
	return learnPlaces(p.place, s.counts(p), outs)
}

func learnPlaces(p place, counts partitionCounts, outs ledger.Outputs) (ps []place) {
	add := func(topic string, n int32) {
		if w := (place{topic, n}); n >= 0 && n < counts[topic] && !slices.Contains(ps, w) {
			ps = append(ps, w)
		}
	}
	for topic, n := range counts {
		if topic == p.topic {
			continue
		}
		if n == counts[p.topic] {
			add(topic, p.partition)
		}
		for i := range outs[topic] {
			add(topic, i)
		}
		for i := int32(0); i < n && (n != counts[p.topic] || counts.grown(outs, topic) || counts.grown(outs, p.topic)); i++ {
			add(topic, i)
		}
	}
	return ps
}

// inTurn runs when one of the places is free.
func (w *learner) inTurn(ctx context.Context, places chan struct{}) lessonEnd {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return w.run(ctx)
	case <-ctx.Done():
		return lessonEnd{place: w.p.place, claim: w.p.claim, err: ctx.Err()}
	}
}

func (w *learner) run(ctx context.Context) lessonEnd {
	w.at("lesson begins")
	end := lessonEnd{place: w.p.place, claim: w.p.claim}
	outs, err := w.read(ctx)
	if err != nil {
		end.err = err
		return end
	}
	end.at, end.seq, end.d, end.outs = w.last, w.seq, w.d, outs
	if w.count > 0 {
		end.report = w.l.report
	}
	return end
}

// read learns the range and returns where its outputs end.
func (w *learner) read(ctx context.Context) (ledger.Outputs, error) {
	if err := w.askEpochs(ctx); err != nil {
		return nil, err
	}
	w.at("epochs asked")
	r, err := w.s.proc.openReader(ctx, w.s.kafka.adm, w.l.outs, w.places, w.keep)
	if err != nil {
		return nil, err
	}
	defer r.close()
	defer func() { w.raw.close() }()
	said := time.Now()
	for {
		t, ok, err := r.next(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		w.at("output read back")
		if err := w.take(ctx, t, r); err != nil {
			return nil, err
		}
		if time.Since(said) > learnProgress {
			said = time.Now()
			w.s.log.Info("learning from the outputs", "topic", w.p.topic, "partition", w.p.partition,
				"records", w.count, "at", w.last.Offset, "to", w.l.to.Offset)
		}
	}
	return w.finish(ctx, r)
}

func (w *learner) askEpochs(ctx context.Context) error {
	b, err := w.s.rawBounds(ctx, []*part{&w.p})
	if err != nil {
		return err
	}
	logStart, logEnd, err := b.of(&w.p)
	if err != nil {
		return err
	}
	w.logStart, w.logEnd = logStart.Offset, logEnd.Offset
	w.latest = max(logEnd.LeaderEpoch, w.l.from.Epoch, w.l.to.Epoch)
	w.epochs, err = w.s.epochs(ctx, &w.p, w.latest)
	return err
}

// take hands an output over in lessons of a chunk's size. Outputs of one
// origin come once: laws 1 and the order within a partition see to it; a
// second one would be a fault to be seen, not to be learned.
func (w *learner) take(ctx context.Context, t told, r *outputReader) error {
	if t.origin.Less(w.last) {
		w.s.log.Error("two committed outputs of one record, or out of order", "topic", w.p.topic,
			"partition", w.p.partition, "offset", t.origin.Offset, "after", w.last.Offset)
		return nil
	}
	if err := w.hole(ctx, w.last, t.origin); err != nil {
		return err
	}
	w.batch = append(w.batch, t.learned)
	w.last = ledger.Position{Epoch: t.origin.Epoch, Offset: t.origin.Offset + 1}
	if len(w.batch) < ledger.MaxChunk {
		return nil
	}
	return w.hand(ctx, w.last, 0, w.ends(r))
}

// ends is where the outputs of what was read so far end.
func (w *learner) ends(r *outputReader) ledger.Outputs {
	outs := r.ends()
	w.counts.addTo(outs)
	return outs
}

// hand writes a lesson.
func (w *learner) hand(ctx context.Context, to ledger.Position, seq int64, outs ledger.Outputs) error {
	w.at("lesson laid out")
	newSeq, d, err := w.s.cfg.Ledger.Positions.Learn(ctx, &ledger.Lesson{
		Partition: w.p.id, Claim: w.p.claim, Learned: w.batch, To: to, Seq: seq, Outputs: outs, Gaps: w.gaps,
		KnownSeq: w.seq, KnownD: w.d,
	})
	if err != nil {
		return fmt.Errorf("learning: %w", err)
	}
	w.at("lesson answered")
	w.count += int64(len(w.batch))
	w.s.m.learned(w.p.topic, len(w.batch))
	if !w.l.verify {
		w.s.m.behind(w.p.place, max(0, w.l.to.Offset-to.Offset))
	}
	w.seq, w.d, w.batch, w.gaps = newSeq, d, w.batch[:0], nil
	return nil
}

// finish writes what is left, with the position behind all of it.
func (w *learner) finish(ctx context.Context, r *outputReader) (ledger.Outputs, error) {
	outs := w.ends(r)
	if !w.l.verify {
		if err := w.hole(ctx, w.last, w.l.to); err != nil {
			return nil, err
		}
		w.last = w.last.Max(w.l.to)
	}
	if len(w.batch) > 0 || !w.l.verify {
		if err := w.hand(ctx, w.last, w.l.seq, outs); err != nil {
			return nil, err
		}
	}
	if w.count > 0 || !w.l.verify {
		w.s.log.Info("learned from the outputs what PostgreSQL or the group's offset did not tell",
			"topic", w.p.topic, "partition", w.p.partition, "records", w.count, "now_at", w.last.Offset)
	}
	return outs, nil
}

// keep tells whether an output record is one to be learned, and of what origin.
func (w *learner) keep(rec *kgo.Record) (told, bool) {
	o, err := topics.ReadOutput(rec)
	if err != nil || o.Released || o.ReplayID != "" || o.Origin.Partition != w.p.partition || !o.Origin.In(w.p.topic, w.p.id.Topic) {
		return told{}, false
	}
	epoch := w.epochs.at(o.Origin.Offset)
	if o.ID != uuid.Nil {
		// The dedup-id proves topic id and epoch; another one is an output of a
		// topic of this name that is gone.
		e, ok := o.Epoch(w.p.id.Topic, w.l.from.Epoch, w.latest)
		if !ok {
			return told{}, false
		}
		epoch = e
	}
	at := ledger.Position{Epoch: epoch, Offset: o.Origin.Offset}
	if at.Less(w.l.from) || !w.l.verify && !at.Less(w.l.to) {
		return told{}, false
	}
	o.SourceService = w.s.cfg.Input.SourceService(rec.Headers)
	return told{origin: at, learned: w.learnedOf(&o, at)}, true
}

func (w *learner) learnedOf(o *topics.Output, at ledger.Position) ledger.Learned {
	l := ledger.Learned{
		Verdict: o.Verdict,
		Origin: ledger.Origin{
			Gate: ledger.GateKafka, Topic: w.p.id.Topic, Partition: w.p.partition, Epoch: at.Epoch, Offset: at.Offset,
		},
		Account: ledger.UnreadableScope, Reason: o.Reason, Bytes: o.Bytes, PayloadSHA256: o.PayloadSHA256,
		SourceService: o.SourceService, FirstSeenAt: o.FirstSeenAt, ExpiresAt: o.ExpiresAt,
	}
	if o.Scope != (topics.Scope{}) {
		l.Account = o.Scope.String()
		if o.Key != "" {
			l.Key = ledger.Key{Scope: w.s.cfg.Keyer.LedgerScope(o.Scope, o.Key), Key: o.Key}
			l.Aliases, l.Matched = o.Aliases, o.Matched
		}
	}
	return l
}

// endLesson follows a learner that came back.
func (s *session) endLesson(ctx context.Context, e lessonEnd) {
	p := s.parts[e.place]
	if p == nil || p.phase != learning || p.claim != e.claim {
		return
	}
	p.stopLearning = nil
	s.at("lesson brought")
	switch {
	case errors.Is(e.err, errOutputsGone):
		s.hold(p, heldOutputsGone, e.err.Error())
	case errors.Is(e.err, ledger.ErrDenied):
		s.noteFailure("learning", e.err)
		p.retry(time.Second)
	case e.err != nil:
		s.log.Warn("learning stopped; the position is read anew", "topic", p.topic, "partition", p.partition, "error", e.err)
		p.retry(time.Second)
	default:
		if e.report != nil {
			e.report()
		}
		p.seq, p.d, p.wrote = e.seq, e.d, e.at
		b, err := s.rawBounds(ctx, []*part{p})
		if err != nil {
			s.log.Warn("listing a learned partition's log failed; the position is read anew", "error", err)
			p.retry(time.Second)
			return
		}
		s.startAt(ctx, p, e.at, b, e.outs)
		if err := s.writePlaces(ctx, p, nil); err != nil {
			s.log.Warn("where the outputs of a learned partition end was not written; the position is read anew", "error", err)
			return
		}
		s.seekStarted([]*part{p})
	}
}
