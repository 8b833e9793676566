package processor

import (
	"fmt"

	"github.com/google/uuid"

	"dedupledger/ledger"
)

// Picture is what the stores tell of one raw partition at one moment, for those
// who look on: `dedup doctor` tells by it what the filter would do.
type Picture struct {
	Ledger    uuid.UUID
	Partition ledger.Partition
	Topic     string
	// Offset is the group's, -1 where it has none, with its leader epoch and
	// metadata.
	Offset   int64
	Epoch    int32
	Metadata string
	Row      *ledger.PositionRow // nil: none
	// Counts are the partitions of the raw topic and of its outputs, by name.
	Counts map[string]int32
	// Log is where an output partition starts and ends; false: nobody knows.
	Log func(topic string, partition int32) (start, end int64, known bool)
}

// Standing is the rule's answer (ARCHITECTURE §4).
type Standing struct {
	Found bool // the group has an offset
	Ours  bool // set by the filter, and exact
	// Learns says that outputs are read back before anything is consumed.
	Learns bool
	From   ledger.Position // W: from where they are, or the zero position
	At     ledger.Position // where consuming starts; of Learns: at least. Unset where there is no row
	Gone   string          // what is missing of the outputs that must be read, as Held.Why; "": nothing
}

// Stand applies the rule without touching anything.
func (p *Picture) Stand() Standing {
	g := judgeOffset(p.Ledger, p.Partition.Topic, p.Offset, p.Epoch, p.Metadata)
	st := decideStart(g, p.Row)
	s := Standing{Found: g.found, Ours: g.ours, From: st.from, At: st.at}
	outs := ledger.Outputs{}
	switch st.kind {
	case startLearn, startVerify:
		s.Learns, outs = true, p.Row.Outputs
		s.At = st.at.Max(st.from)
	case openLearn:
		s.Learns = true
	default: // consumed at once
	}
	if s.Learns {
		s.Gone = p.gone(outs)
	}
	return s
}

// gone is the first output that retention has taken (openReader says the same).
func (p *Picture) gone(outs ledger.Outputs) string {
	for _, w := range learnPlaces(place{p.Topic, p.Partition.Partition}, p.Counts, outs) {
		start, end, known := p.Log(w.topic, w.partition)
		at := outs[w.topic][w.partition]
		if !known || at > end || !outputsGone(at, start, end) {
			continue
		}
		return fmt.Sprintf("%s/%d starts at %d, needed from %d", w.topic, w.partition, start, at)
	}
	return ""
}
