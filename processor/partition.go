package processor

import (
	"fmt"
	"maps"
	"time"

	"dedupledger/ledger"
	"dedupledger/topics"
	"dedupledger/topics/acl"
)

// place names a raw partition by topic name, as the client does.
type place struct {
	topic     string
	partition int32
}

// phase is what a session does with a partition it was assigned.
type phase uint8

const (
	pending  phase = iota + 1 // assigned; the position rule is still to be applied
	learning                  // reads its outputs back; not consumed
	held                      // not consumed until something outside changes
	running                   // consumed
)

func (p phase) String() string {
	return [...]string{"none", "pending", "learning", "held", "running"}[p]
}

// part is what a session knows of one raw partition. Only the session's own
// goroutine touches it; callbacks of the client leave events instead.
type part struct {
	place
	id    ledger.Partition
	phase phase

	// Held: a closed reason (metric label) and words for people.
	reason, why  string
	untold       bool      // in the row
	again        time.Time // pending or held: not looked at before
	unstable     time.Time // since when an open transaction holds the group's offset; zero: none does
	toldUnstable time.Time // when the log said so
	// needs are the topics that a held partition waits for, or nil; lacks the
	// rights on topics that it met a record for.
	needs *topics.MissingError
	lacks acl.Rights

	claim ledger.Claim
	row   *ledger.PositionRow // as claimed; nil: there was none
	seq   int64               // of the row, as last written or read
	d     ledger.Position     // likewise
	next  ledger.Position     // where consuming goes on
	w     ledger.Position     // committed, as this session knows
	// passed is behind the last control record read. Without it the position of
	// a partition at rest would stay before the marker of a producer's last
	// transaction, and once retention has taken that, the log would seem to
	// start beyond records that nobody read.
	passed ledger.Position
	cut    []ledger.Range  // of decided records that are gone, to be recorded
	wrote  ledger.Position // W in the row, as last written or read
	outs   ledger.Outputs  // where the outputs of w end
	// freshOuts says that outs tells more than the row does, though W may be the
	// same: else an output that gets nothing from here would keep its end of
	// long ago, and once retention has passed that, learning would take its
	// outputs for gone.
	freshOuts bool

	saidForeign foreignOffset // reported already
	unread      unread        // where fetching failed last, until something is read

	logEnd int64 // last stable offset, as last fetched

	stopLearning func() // ends the reading back, or nil
}

// foreignOffset is a group offset that is not ours, as it was reported.
type foreignOffset struct {
	found     bool
	offset    int64
	committed ledger.Position
}

// start sets a partition running at a position that is known to be committed.
func (p *part) start(at ledger.Position, outs ledger.Outputs) {
	p.phase, p.reason, p.why = running, "", ""
	p.next, p.w, p.passed, p.cut = at, at, at, nil
	p.outs, p.freshOuts = outs, true
}

// behind reports whether the row does not tell what this session knows.
func (p *part) behind() bool { return p.wrote.Less(p.w) || p.freshOuts }

// hold keeps it from being consumed; it is looked at again after wait.
func (p *part) hold(reason, why string, wait time.Duration) {
	p.phase, p.reason, p.why, p.untold = held, reason, why, true
	p.again = time.Now().Add(wait)
}

// awaitStable looks again soon for the end of an open transaction that holds the
// group's offset or an output. overdue says since when it should have ended: after limit its
// coordinator has aborted it, if it knows of it; tell is true at first and then
// each minute.
func (p *part) awaitStable(now time.Time, limit time.Duration) (overdue time.Duration, tell bool) {
	p.retry(settleWait)
	if p.unstable.IsZero() {
		p.unstable = now
	}
	overdue = now.Sub(p.unstable) - limit
	if overdue <= 0 {
		return 0, false
	}
	if tell = now.Sub(p.toldUnstable) >= time.Minute; tell {
		p.toldUnstable = now
	}
	p.reason = waitsHanging
	p.why = fmt.Sprintf("a transaction of this group has been open for %s and should have ended: Kafka may have lost its end; `dedup topics hanging` finds it and `dedup topics hanging --end` ends it",
		now.Sub(p.unstable).Round(time.Second))
	return overdue, tell
}

// stable notes that no open transaction holds the group's offset.
func (p *part) stable() {
	if p.reason == waitsHanging {
		p.reason, p.why = "", ""
	}
	p.unstable, p.toldUnstable = time.Time{}, time.Time{}
}

// retry applies the position rule anew, after wait.
func (p *part) retry(wait time.Duration) {
	p.phase = pending
	p.again = time.Now().Add(wait)
}

// advance is the partition's part of a chunk that ends behind newD.
func (p *part) advance(newD ledger.Position) ledger.Advance {
	return ledger.Advance{
		Partition: p.id, Claim: p.claim, Seq: p.seq, D: p.d,
		NewD: p.d.Max(newD).Max(p.w), W: p.w, Outputs: p.outs,
	}
}

// took notes that the ledger has applied an advance.
func (p *part) took(a ledger.Advance, seq int64) {
	p.seq, p.d, p.wrote = seq, a.NewD, a.W
}

// committed notes that records up to end have their outputs, which end at outs.
func (p *part) committed(end ledger.Position, outs ledger.Outputs) {
	p.w = p.w.Max(end).Max(p.passed)
	p.raise(outs)
}

// raise moves the outputs' ends up, and reports whether they were lower.
func (p *part) raise(outs ledger.Outputs) (rose bool) {
	for topic, ps := range outs {
		if p.outs[topic] == nil {
			p.outs[topic] = map[int32]int64{}
		}
		for n, off := range ps {
			if was, ok := p.outs[topic][n]; !ok || was < off {
				p.outs[topic][n], rose = off, true
			}
		}
	}
	return rose
}

// cloneOutputs is a deep copy, for what outlives the partition's own.
func cloneOutputs(o ledger.Outputs) ledger.Outputs {
	c := make(ledger.Outputs, len(o))
	for topic, ps := range o {
		m := make(map[int32]int64, len(ps))
		maps.Copy(m, ps)
		c[topic] = m
	}
	return c
}
