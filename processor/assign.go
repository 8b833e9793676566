package processor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"dedupledger/ledger"
)

// Reasons of held partitions; metric labels, a closed list.
const (
	heldGroup       = "group"        // another consumer group filters this partition
	heldLogStart    = "log_start"    // the log starts beyond the position, in an earlier epoch
	heldLogEnd      = "log_end"      // the log ends before the position
	heldOutputsGone = "outputs_gone" // retention has taken outputs that must be learned
	heldTopics      = "topics"       // an output topic is missing
	heldDeadLetter  = "dead_letter"  // dead-letter refuses a record, its reference too
	heldRights      = "rights"       // a right on a topic is missing
	heldUnreadable  = "unreadable"   // a record of the raw topic cannot be fetched
)

// waitsHanging is why a pending partition does not start: the group's offset is
// held by a transaction that should have ended long ago.
const waitsHanging = "hanging_transaction"

// timeoutScan is what may pass, beyond the transaction timeout, until a broker
// has aborted a transaction: it looks every 10 s, and writes the markers then.
const timeoutScan = 15 * time.Second

const (
	heldWait   = 10 * time.Second
	settleWait = 200 * time.Millisecond
)

// settle applies the position rule (ARCHITECTURE §4) to every partition that waits
// for it. An error leaves them pending; the partitions that run are not
// touched.
func (s *session) settle(ctx context.Context) error {
	waiting := s.waiting()
	if len(waiting) == 0 {
		return nil
	}
	if err := s.rightsBack(ctx); err != nil {
		return err
	}
	ready, err := s.lookUp(ctx, waiting)
	if err != nil {
		return err
	}
	if len(ready) == 0 {
		return nil
	}
	s.at("topics looked up")
	offsets, err := s.groupOffsets(ctx, ready)
	if err != nil {
		return err
	}
	s.at("group offsets read")
	b, err := s.rawBounds(ctx, ready)
	if err != nil {
		return err
	}
	s.at("log bounds read")
	ends, err := s.outputEnds(ctx, ready)
	if err != nil {
		return err
	}
	s.at("output ends read")
	var outs []place
	for _, p := range ready {
		outs = append(outs, s.outputPlaces(p)...)
	}
	open, err := s.kafka.unended(ctx, s.cfg.Group, outs)
	if err != nil {
		return err
	}
	if ready = s.closed(ready, offsets, open); len(ready) == 0 {
		return nil
	}
	ready, failed := s.claim(ctx, ready, offsets)
	for _, p := range ready {
		if err := s.place(ctx, p, offsets[p], b, ends.of(p)); err != nil {
			s.seekStarted(ready)
			return err
		}
		s.ledgerAnswered()
	}
	s.seekStarted(ready)
	return failed
}

// closed are those partitions that no transaction of before holds open: neither
// their offset nor an output. Its fencing or its timeout ends it. Not always: Kafka
// has lost the end of some (internal/hanging).
func (s *session) closed(ready []*part, offsets map[*part]groupOffset, open map[place]bool) (closed []*part) {
	for _, p := range ready {
		if _, stable := offsets[p]; !stable || anyOf(open, s.outputPlaces(p)) {
			s.awaitStable(p)
			continue
		}
		p.stable()
		closed = append(closed, p)
	}
	return closed
}

func (s *session) awaitStable(p *part) {
	limit := s.cfg.overdue
	if limit == 0 {
		limit = s.cfg.Transaction + timeoutScan
	}
	if overdue, tell := p.awaitStable(time.Now(), limit); tell {
		s.log.Warn("a partition waits for a transaction that should have ended", "topic", p.topic, "partition", p.partition,
			"overdue", overdue.Round(time.Second).String(), "why", p.why)
	}
}

// waiting lists what is pending or held and due.
func (s *session) waiting() []*part {
	var ps []*part
	now := time.Now()
	for _, p := range s.parts {
		if (p.phase == pending || p.phase == held) && !p.again.After(now) {
			ps = append(ps, p)
		}
	}
	return ps
}

// place applies the rule to one partition that was claimed.
func (s *session) place(ctx context.Context, p *part, g groupOffset, b bounds, outs ledger.Outputs) error {
	row := p.row
	if row == nil {
		return s.open(ctx, p, s.positionKey(p), g, b, outs)
	}
	p.seq, p.d, p.wrote = row.Seq, row.D, row.W
	st := decideStart(g, row)
	switch st.kind {
	case startLearn:
		s.m.behind(p.place, st.at.Offset-row.W.Offset)
		s.learn(p, lesson{from: row.W, to: st.at, seq: st.seq, outs: row.Outputs})
	case startVerify:
		l := lesson{from: row.W, verify: true, outs: row.Outputs}
		if g.found || row.Seq > 0 && row.D == row.W {
			s.foreign(p, g, row)
		} else {
			// Missing, and perhaps never there: the first transaction may not
			// have been committed yet. If its outputs are there, it was.
			l.report = func() { s.foreign(p, g, row) }
		}
		s.learn(p, l)
	default:
		s.startAt(ctx, p, st.at, b, outs)
		return s.writePlaces(ctx, p, row.Outputs)
	}
	return nil
}

// writePlaces tells the row, before the first record, of places where outputs of
// a partition that starts can go from now on and that the row does not name, or
// with other partition counts. Otherwise:
//
//	the clean topic grows, outputs go by key, to a partition the row does not name
//	the raw topic grows too, outputs go by partition again
//	PostgreSQL loses its last commits: learning looks at one partition of clean
//	and misses what went by key
func (s *session) writePlaces(ctx context.Context, p *part, told ledger.Outputs) error {
	if p.phase != running || endsTold(told).all(p.outs) {
		return nil
	}
	if err := s.cfg.Ledger.Positions.Flush(ctx, []ledger.Advance{p.advance(p.d)}); err != nil {
		p.retry(0)
		return fmt.Errorf("writing where the outputs of %s/%d end: %w", p.topic, p.partition, err)
	}
	p.wrote, p.d, p.freshOuts = p.w, p.d.Max(p.w), false
	s.at("places written")
	return nil
}

// endsTold is what a row tells of outputs.
type endsTold ledger.Outputs

// all reports whether each place of outs is told, with the same counts.
func (t endsTold) all(outs ledger.Outputs) bool {
	for topic, ends := range outs {
		for n, at := range ends {
			told, ok := t[topic][n]
			if !ok || n == ledger.OutputCount && told != at {
				return false
			}
		}
	}
	return true
}

// open makes the row before the first poll: without it a Postgres that lost
// the first chunk would not be noticed.
func (s *session) open(ctx context.Context, p *part, key ledger.PositionKey, g groupOffset, b bounds, outs ledger.Outputs) error {
	st := decideStart(g, nil)
	logStart, _, err := b.of(p)
	if err != nil {
		s.later(p, err)
		return nil
	}
	offset := logStart.Offset
	if st.kind == openAt {
		offset = st.at.Offset
	}
	at, err := s.resolve(ctx, p, offset, b)
	if err != nil {
		s.later(p, err)
		return nil
	}
	if st.kind == openLearn {
		outs = ledger.Outputs{} // from where the outputs' logs start
	}
	made, err := s.cfg.Ledger.Positions.OpenPosition(ctx, key, p.claim, at, outs)
	if err != nil {
		return fmt.Errorf("making the position of %s/%d: %w", p.topic, p.partition, err)
	}
	if !made {
		p.retry(0) // somebody made it meanwhile: look again
		return nil
	}
	p.seq, p.d, p.wrote = 0, at, at
	s.at("row made")
	s.log.Info("new position", "topic", p.topic, "partition", p.partition, "offset", at.Offset, "epoch", at.Epoch)
	s.tellFormer(ctx, key)
	if st.kind == openLearn {
		s.learn(p, lesson{from: at, to: st.at, seq: st.seq, outs: outs})
		return nil
	}
	s.startAt(ctx, p, at, b, outs)
	return nil
}

// startAt lets a partition run, at the log start where that has passed the
// position, unless the log does not yet hold the position.
func (s *session) startAt(ctx context.Context, p *part, at ledger.Position, b bounds, outs ledger.Outputs) {
	logStart, logEnd, err := b.of(p)
	if err != nil {
		s.later(p, err)
		return
	}
	next, err := s.behindCut(ctx, p, at, logEnd.LeaderEpoch)
	switch {
	case err != nil:
		s.later(p, err)
	case next.Offset < logStart.Offset:
		s.passLogStart(ctx, p, at.Max(next), b, outs)
	case next.Offset > logEnd.Offset:
		s.hold(p, heldLogEnd, fmt.Sprintf("position %d lies behind the log end %d: the log was cut", next.Offset, logEnd.Offset))
	default:
		p.start(at, cloneOutputs(outs))
		p.next = next
		s.at("partition placed")
		if next.Offset >= logEnd.Offset {
			p.unread = unread{} // nothing is there that could not be read
		}
		s.log.Log(ctx, levelOfStart(p), "partition starts", "topic", p.topic, "partition", p.partition, "offset", next.Offset, "epoch", next.Epoch)
	}
}

// levelOfStart keeps the log from telling every ten seconds that a partition is
// tried again.
func levelOfStart(p *part) slog.Level {
	if p.unread.held {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// behindCut is where to go on reading from a committed position: at it, unless
// the log was cut below it. Then a leader was elected that lacked the last
// records of the position's epoch, and other records have taken their offsets,
// or will. Those are later than the position, by their epoch, and lie below its
// offset: starting there would pass over them (KIP-320).
func (s *session) behindCut(ctx context.Context, p *part, at ledger.Position, latest int32) (ledger.Position, error) {
	if latest <= at.Epoch {
		return at, nil
	}
	end, known, err := s.epochEnd(ctx, p, at.Epoch)
	if err != nil || !known || end.Offset >= at.Offset {
		return at, err
	}
	s.log.Warn("the log was cut below the committed position; going on where the new leader did",
		"topic", p.topic, "partition", p.partition, "committed", at.Offset, "epoch", at.Epoch, "offset", end.Offset)
	return end, nil
}

// later tries one partition again although others could be placed.
func (s *session) later(p *part, err error) {
	s.log.Warn("a partition cannot start yet", "topic", p.topic, "partition", p.partition, "error", err)
	p.retry(time.Second)
}

// hold says it once per reason, and again only when the words change.
func (s *session) hold(p *part, reason, why string) {
	if p.reason != reason || p.why != why {
		s.log.Error("partition held: it is not consumed", "topic", p.topic, "partition", p.partition, "reason", reason, "why", why)
	}
	p.hold(reason, why, heldWait)
	s.m.partitions(s.index, s.parts)
}

// foreign reports an offset that another tool set, once: never obeyed.
func (s *session) foreign(p *part, g groupOffset, row *ledger.PositionRow) {
	said := foreignOffset{found: g.found, offset: g.at.Offset, committed: row.W}
	if p.saidForeign == said {
		return
	}
	p.saidForeign = said
	s.m.foreign(p.topic)
	set := "the group's offset was deleted by another tool"
	if g.found {
		set = fmt.Sprintf("the group's offset was set to %d by another tool", g.at.Offset)
	}
	s.log.Warn(set+" and is not obeyed: going on behind the last committed output; to pass over records: dedup skip",
		"topic", p.topic, "partition", p.partition, "committed", row.W.Offset)
}

// seekStarted points the client at what has just started.
func (s *session) seekStarted(ps []*part) {
	var started []*part
	for _, p := range ps {
		if p.phase == running {
			started = append(started, p)
		}
	}
	if len(started) > 0 {
		s.kafka.seek(started)
	}
	s.m.partitions(s.index, s.parts)
}
