package processor

import (
	"context"
	"time"

	"dedupledger/ledger"
)

// idle flushes W when nothing came.
func (s *session) idle(work context.Context) error {
	s.at("nothing came")
	s.m.ages.idle(s.parts)
	for _, p := range s.parts {
		if p.phase == running {
			p.w = p.w.Max(p.passed) // nothing read is uncommitted now
		}
	}
	if !s.anyPending() {
		s.state.nothingInHand()
	}
	s.raiseOutputs(work)
	if err := s.proc.names.catchUp(work, s.kafka.adm, s.cfg.Router); err != nil {
		s.log.Debug("names of raw topics were not read", "error", err)
	}
	return s.flush(work, false)
}

// raiseOutputs takes the present ends of all outputs now and then. Nothing is in
// hand, so whatever comes from here later lies behind them.
func (s *session) raiseOutputs(ctx context.Context) {
	if time.Since(s.raised) >= raiseEvery {
		s.raised = time.Now()
		s.raiseNow(ctx)
	}
}

// raiseLast does it before a stop. What was committed last ends before its marker
// otherwise, for as long as nothing runs, and once retention has taken that,
// learning would take outputs for gone.
func (s *session) raiseLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	s.raiseNow(ctx)
}

func (s *session) raiseNow(ctx context.Context) {
	var ps []*part
	for _, p := range s.parts {
		if p.phase == running {
			ps = append(ps, p)
		}
	}
	if len(ps) == 0 {
		return
	}
	ends, err := s.outputEnds(ctx, ps)
	if err != nil {
		s.log.Debug("ends of outputs were not read", "error", err)
		return
	}
	for _, p := range ps {
		p.freshOuts = p.raise(ends.of(p)) || p.freshOuts
	}
}

// flush writes W of the partitions where the row is behind. A refusal means
// that another session has the partition or that Postgres lost commits: the
// rule is applied again. At the end nothing is left to apply it to.
func (s *session) flush(ctx context.Context, last bool) error {
	var as []ledger.Advance
	for _, p := range s.parts {
		if p.phase == running && p.behind() {
			as = append(as, p.advance(p.d))
		}
	}
	if len(as) == 0 {
		return nil
	}
	s.at("positions gathered")
	err := s.cfg.Ledger.Positions.Flush(ctx, as)
	s.at("positions answered")
	switch {
	case err == nil:
		s.ledgerAnswered()
		for _, p := range s.parts {
			if p.phase == running {
				p.wrote, p.d, p.freshOuts = p.w, p.d.Max(p.w), false
			}
		}
	case last:
		s.log.Warn("the committed positions were not written; the next start finds them in the group's offsets", "error", err)
	default:
		s.resync("positions were not flushed")
		s.afterFailure(ctx, "flushing positions", err)
		return fatalOnly(err)
	}
	return nil
}

// flushQuietly writes W of partitions that are going away. Their next owner may
// have claimed them already; the refusal is then right.
func (s *session) flushQuietly(ctx context.Context, events []event) {
	var as []ledger.Advance
	for _, e := range events {
		if p := s.parts[e.place]; !e.gained && p != nil && p.phase == running && p.wrote.Less(p.w) {
			as = append(as, p.advance(p.d))
		}
	}
	if len(as) == 0 {
		return
	}
	if err := s.cfg.Ledger.Positions.Flush(ctx, as); err != nil {
		s.log.Debug("positions of revoked partitions were not flushed", "error", err)
	}
}
