package processor

import (
	"context"
	"fmt"

	"dedupledger/ledger"
)

// reasonOutputRejected is the code of a record that an output topic refused.
const reasonOutputRejected = "output.rejected"

// rejection is what became of a record that an output refused.
type rejection struct {
	reason    string
	reference bool // dead-letter refused it too: without its value, with the present time
}

// narrowing finds the record that an output refuses. A broker refuses a whole
// batch for one record, so the batch is halved: it comes again in smaller
// transactions, each committing its own offsets in order, until the stretch in
// which the fault lies has been committed.
type narrowing struct {
	size     int
	suspects map[*part]ledger.Position // the stretch that failed ends here
}

// limit is how many records the next poll may take.
func (n *narrowing) limit(full int) int {
	if n.size == 0 {
		return full
	}
	return min(n.size, full)
}

// failed narrows to half of a batch that was refused.
func (n *narrowing) failed(b *batch) {
	n.size = max(1, len(b.items)/2)
	n.suspects = b.ends()
}

// committed widens again when all of the suspected stretch has passed.
func (n *narrowing) committed(b *batch) {
	if n.size == 0 {
		return
	}
	for p, end := range b.ends() {
		if suspect, ok := n.suspects[p]; ok && !end.Less(suspect) {
			n.forget(p)
		}
	}
}

// forget drops the suspicion about a partition.
func (n *narrowing) forget(p *part) {
	delete(n.suspects, p)
	if len(n.suspects) == 0 {
		n.size = 0
	}
}

// isolate answers a data error of a transaction. The batch comes again.
func (s *session) isolate(ctx context.Context, b *batch, cause error) error {
	if len(b.items) > 1 {
		s.narrow.failed(b)
		s.at("batch halved")
		s.log.Info("an output refused a record of the batch; it is halved", "records", len(b.items), "error", cause)
		return nil
	}
	it := &b.items[0]
	r := s.rejected[it.reg.Origin]
	switch {
	case it.verdict != ledger.Invalid:
		s.at("refusal to be recorded")
		if err := s.cfg.Ledger.Registrar.Reject(ctx, it.part.claim, it.reg, reasonOutputRejected); err != nil {
			s.afterFailure(ctx, "closing the row of a refused record", err)
			return fatalOnly(err)
		}
		s.at("refusal recorded")
		s.forgetFact(b, it)
		r = rejection{reason: reasonOutputRejected}
	case it.observed():
		// Counted as INVALID already, with the reason it has in the ledger. What
		// clean refused goes to dead-letter, and is not tried there again.
		s.at("observed record refused")
		r = rejection{reason: reasonOutputRejected}
	case !r.reference:
		s.at("reference chosen")
		r = rejection{reason: it.reason, reference: true}
	default:
		// Only its topic's settings can mend that. The partition waits, the
		// others of the session go on in full batches.
		s.hold(it.part, heldDeadLetter, fmt.Sprintf("dead-letter refuses even a reference to %s: %v", s.placeOf(it), cause))
		s.narrow.forget(it.part)
		return nil
	}
	s.rejected[it.reg.Origin] = r
	s.narrow.failed(b)
	s.log.Warn("an output refused a record; it goes to dead-letter", "place", s.placeOf(it), "reason", r.reason,
		"reference", r.reference, "error", cause)
	return nil
}

// applyRejections turns records that an output refused into INVALID.
func (s *session) applyRejections(items []item) {
	if len(s.rejected) == 0 {
		return
	}
	for i := range items {
		if r, ok := s.rejected[items[i].reg.Origin]; ok {
			items[i].verdict, items[i].reason = ledger.Invalid, r.reason
		}
	}
}

// forgetFact leaves a tombstone in the hot tier for a row that was closed.
func (s *session) forgetFact(b *batch, it *item) {
	if it.verdict != ledger.New {
		return
	}
	facts := ledger.FactsOf([]ledger.Registration{*it.reg}, []ledger.Result{*it.res})
	for i := range facts {
		facts[i].Closed, facts[i].Inserted = true, false
	}
	s.cfg.Ledger.Memory.Confirm(facts, b.clock)
}
