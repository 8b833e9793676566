package processor

import "dedupledger/ledger"

// groupOffset is the consumer group's committed offset of one partition, read
// with RequireStable.
type groupOffset struct {
	found  bool
	at     ledger.Position // epoch -1: the offset carries none
	seq    int64           // of the marker, if any
	marked bool            // carries a dd1 marker of whatever ledger
	ours   bool            // the marker names this ledger, this topic id and this very offset
}

// startKind is what the rule of ARCHITECTURE §4 asks for.
type startKind uint8

const (
	startAt     startKind = iota + 1 // consume from at
	startLearn                       // learn the outputs in [from, at), then consume from at
	startVerify                      // another tool was here: learn whatever is committed behind from
	openAt                           // no row: make one at a resolved offset, consume from there
	openAtStart                      // no row: make one at the log start
	openLearn                        // no row, yet ours: make one at the log start, learn up to at
)

// start is the rule's answer. from is W; seq the marker's where learning ends.
type start struct {
	kind startKind
	from ledger.Position
	at   ledger.Position
	seq  int64
}

// decideStart is the table of ARCHITECTURE §4. row is nil when there is none. It is
// pure; resolving offsets without an epoch is left to the caller, because it
// asks the broker.
func decideStart(g groupOffset, row *ledger.PositionRow) start {
	if row == nil {
		return decideOpen(g)
	}
	if !g.ours {
		return start{kind: startVerify, from: row.W}
	}
	if row.D.Less(g.at) || row.Seq < g.seq {
		// Postgres lost commits: what it once decided is committed in Kafka and
		// unknown to it now. Only the outputs can tell; raw would make a record
		// that was SEEN the first of its key.
		return start{kind: startLearn, from: row.W, at: g.at, seq: g.seq}
	}
	return start{kind: startAt, at: row.W.Max(g.at)}
}

func decideOpen(g groupOffset) start {
	switch {
	case g.ours:
		return start{kind: openLearn, at: g.at, seq: g.seq}
	case g.found && !g.marked:
		return start{kind: openAt, at: g.at}
	default: // missing, or of a ledger or topic that is gone
		return start{kind: openAtStart}
	}
}

// below reports whether a record lies before what the session knows to be
// committed: possible only after the client was reset to an older offset. Such
// a record is skipped before it is registered.
func below(at, committed ledger.Position) bool { return at.Less(committed) }
