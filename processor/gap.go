package processor

import (
	"context"
	"fmt"

	"dedupledger/ledger"
)

// cutBefore is what a record of a later epoch shows to be gone: what was decided
// behind the last record read, and is not there any more. An unclean election
// has cut the log:
//
//	records 10 to 19 of epoch 1 are decided; their transaction is never committed
//	the leader is lost, and one that lacks 15 to 19 takes over, in epoch 2
//	10 to 14 come again, then 15 of epoch 2: what was 15 to 19 never comes
//
// Between two records that follow each other in the log nothing else is, so both
// ends are exact. What is committed was read, whatever became of it, and lies
// before the range.
func (p *part) cutBefore(at ledger.Position) (gone ledger.Range, cut bool) {
	last := p.next.Max(p.w).Max(p.passed)
	if at.Epoch <= last.Epoch || !last.Less(p.d) {
		return ledger.Range{}, false
	}
	return ledger.Range{From: last, To: at}, true
}

// recordGaps writes down what the records of a poll have shown to be gone,
// before any of them is registered: a copy of what is gone is then the first of
// its key. Where it cannot be written the poll is thrown back.
func (s *session) recordGaps(stop, work context.Context) (recorded bool, err error) {
	for _, p := range s.parts {
		for ; len(p.cut) > 0; p.cut = p.cut[1:] {
			if err := s.recordGap(work, p, p.cut[0], ledger.GapEpoch); err != nil {
				s.resync("a gap was not recorded")
				s.afterFailure(stop, "recording a gap", err)
				return false, fatalOnly(err)
			}
		}
	}
	return true, nil
}

func (s *session) recordGap(ctx context.Context, p *part, of ledger.Range, kind ledger.GapKind) error {
	lost := of.Offsets()
	if p.d.Epoch == of.From.Epoch && kind == ledger.GapEpoch {
		lost = p.d.Offset - of.From.Offset // later ones were never read
	}
	known := p.advance(p.d)
	fresh, err := s.cfg.Ledger.Positions.RecordGap(ctx, &known, &ledger.Gap{Partition: p.id, Range: of, Kind: kind})
	if err != nil {
		return fmt.Errorf("recording a gap of %s/%d: %w", p.topic, p.partition, err)
	}
	s.at("gap recorded")
	if !fresh {
		return nil
	}
	s.m.gap(p.topic, lost)
	say := "the log was cut: records were decided, never committed, and are gone; their next copies are NEW"
	if kind == ledger.GapLogStart {
		say = "records were deleted before they were read; going on behind them"
	}
	s.log.Error(say, "topic", p.topic, "partition", p.partition, "kind", string(kind), "offsets", lost,
		"from_offset", of.From.Offset, "from_epoch", of.From.Epoch, "to_offset", of.To.Offset, "to_epoch", of.To.Epoch)
	return nil
}

// passLogStart goes on where the log starts: what lies between the position and
// that was deleted, and never read. The position is exact here, and so is the
// start of the log. Rows whose records are in between were decided and never
// committed.
func (s *session) passLogStart(ctx context.Context, p *part, at ledger.Position, b bounds, outs ledger.Outputs) {
	logStart, _, err := b.of(p)
	if err != nil {
		s.later(p, err)
		return
	}
	to, err := s.resolve(ctx, p, logStart.Offset, b)
	switch {
	case err != nil:
		s.later(p, err)
		return
	case !at.Less(to):
		s.hold(p, heldLogStart, fmt.Sprintf("position %d of epoch %d lies before the log start %d, whose epoch is %d: that is another log",
			at.Offset, at.Epoch, to.Offset, to.Epoch))
		return
	}
	if err := s.recordGap(ctx, p, ledger.Range{From: at, To: to}, ledger.GapLogStart); err != nil {
		s.later(p, err)
		return
	}
	p.wrote, p.d = p.wrote.Max(to), p.d.Max(to)
	p.start(to, cloneOutputs(outs))
	s.log.Info("partition starts", "topic", p.topic, "partition", p.partition, "offset", to.Offset, "epoch", to.Epoch)
}

// tellHeld says in the rows which partitions are held since the last round, so
// that a command may settle them. Where the row has another claim by now the rule
// is applied anew: a command has settled it, or another session has it. What
// could not be written is told when the partition is held again.
func (s *session) tellHeld(ctx context.Context) {
	for _, p := range s.parts {
		if p.phase != held || !p.untold {
			continue
		}
		p.untold = false
		if p.reason == heldGroup || p.claim == (ledger.Claim{}) {
			continue
		}
		kept, err := s.cfg.Ledger.Positions.Hold(ctx, p.id, p.claim, p.reason, p.why)
		switch {
		case err != nil:
			s.log.Debug("why a partition is held was not written", "topic", p.topic, "partition", p.partition, "error", err)
		case !kept:
			// A command has changed the position: what it waits for may lie before that.
			p.needs = nil
			p.retry(0)
		}
	}
}

// tellFormer says, when a topic that was created again gets its position, what
// the one before it has left: what was decided there and not committed stays in
// the way of its copies until a person says that the topic is gone.
func (s *session) tellFormer(ctx context.Context, key ledger.PositionKey) {
	former, err := s.cfg.Ledger.Positions.Former(ctx, key)
	if err != nil {
		s.log.Debug("positions of topics that are gone were not listed", "topic", key.Topic, "error", err)
		return
	}
	for _, f := range former {
		s.log.Warn("the raw topic was deleted and created again; it starts anew",
			"topic", key.Topic, "partition", f.Partition.Partition, "former_topic_id", f.Partition.Topic.String(),
			"committed", f.W.Offset, "decided", f.D.Offset,
			"settle", "dedup topics retire "+key.Topic+"@"+f.Partition.Topic.String())
	}
}
