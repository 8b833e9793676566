package doctor

import (
	"fmt"
	"time"
)

const areaPositions = "positions"

// maxNamed bounds the lines about partitions in the same state.
const maxNamed = 20

// Judge is pure. now is our clock; running tells whether the group has members.
func (p *Positions) Judge(now time.Time, transactionTimeout time.Duration, running bool) (fs Findings) {
	foreign := 0
	for i := range p.Partitions {
		part := &p.Partitions[i]
		p.judgeHeld(&fs, part, running)
		if part.Open {
			fs.add(Warn, areaPositions, "run it again in a moment; if it stays: dedup topics hanging", "%s: an open transaction holds the group's offset", part)
		}
		if part.Row != nil && part.Row.Group == p.Group && part.Next.Offset < part.Start && !part.Stand.Learns && !part.Open {
			fs.add(Fail, areaPositions, "raise retention.ms of the topic; docs/operations.md#records-without-an-output", "%s: records %d..%d were deleted before they were read; the filter goes on at %d and records a gap",
				part, part.Next.Offset, part.Start-1, part.Start)
		}
		if part.isForeign() && part.Stand.Gone == "" { // else it is held, and that is told
			if foreign++; foreign <= maxNamed {
				part.judgeForeign(&fs, running)
			}
		}
		if part.Stand.Ours && part.Stand.Learns && part.Stand.Gone == "" {
			fs.add(Warn, areaPositions, "", "%s: Kafka has committed up to %d what PostgreSQL does not know (a failover or a restore): the filter learns %d..%d from the outputs by itself",
				part, part.Stand.At.Offset, part.Stand.From.Offset, part.Stand.At.Offset-1)
		}
	}
	if foreign > maxNamed {
		fs.add(Warn, areaPositions, "", "and %d partitions more whose offset another tool set", foreign-maxNamed)
	}
	for _, s := range p.Strays {
		text := "%s with id %s is not there any more; %s of it are kept"
		if s.Open > 0 {
			text += fmt.Sprintf(", %d with records that were decided and perhaps never committed", s.Open)
		}
		fs.add(Warn, areaPositions, fmt.Sprintf("dedup topics retire %s@%s --reason ...", s.Topic, s.ID), text, s.Topic, s.ID, counted(s.Count, "position"))
	}
	for _, t := range p.Open {
		if age := now.Sub(time.UnixMilli(t.Since)); age > transactionTimeout+time.Minute {
			fs.add(Fail, areaPositions, "dedup topics hanging", "transaction %s is open for %s, longer than kafka.transaction_timeout: readers with read_committed stand still behind it", t.ID, days(age))
		}
	}
	return fs.orOK(areaPositions, "%s exact", counted(len(p.Partitions), "partition"))
}

// isForeign tells an offset that another tool set, or deleted. A row that no
// transaction was committed for yet has none.
func (p *Partition) isForeign() bool {
	if p.Row == nil || p.Open || p.Stand.Ours {
		return false
	}
	return p.Stand.Found || p.Row.Seq > 0
}

func (p *Partition) judgeForeign(fs *Findings, running bool) {
	set := "the group's offset was deleted"
	if p.Stand.Found {
		set = fmt.Sprintf("another tool set offset %d", p.Offset)
	}
	goes := "goes on behind its last committed output, at %d or later"
	if running {
		goes = "went on behind its last committed output, at %d or later; its next commit puts the offset right"
	}
	fs.add(Warn, areaPositions, "", "%s: %s. Not obeyed, "+goes+". To read messages again rewind your own group on clean; to pass over: dedup skip %s --to OFFSET --reason ...",
		p, set, p.Row.W.Offset, p)
}

// judgeHeld tells why the filter does not consume a partition, as it would do
// itself (processor/assign.go). What only a session can know it has told the row;
// where no session runs that may be over.
func (p *Positions) judgeHeld(fs *Findings, part *Partition, running bool) {
	held := func(level Level, repair, format string, args ...any) {
		fs.add(level, areaPositions, repair, "%s held: %s", part, fmt.Sprintf(format, args...))
	}
	row := part.Row
	switch {
	case row != nil && row.Group != p.Group:
		held(Fail, fmt.Sprintf("set kafka.group to %s, or, once its processes are stopped: dedup topics adopt %s --reason ...", row.Group, part.Topic),
			"filtered by group %q, not %q", row.Group, p.Group)
	case part.Open: // no offset to judge by yet
	case part.Stand.Gone != "":
		held(Fail, part.repairs("outputs_gone"), "%s, and %s: whether %s have outputs is unknown", part.lost(), part.Stand.Gone, part.unknown())
	case part.Told.Reason != "" && running:
		held(Fail, part.repairs(part.Told.Reason), "%s", part.Told.Why)
	case part.Told.Reason != "":
		held(Warn, part.repairs(part.Told.Reason), "%s (told by a filter that does not run any more)", part.Told.Why)
	case row != nil && part.Next.Offset > part.End && !part.Stand.Learns:
		held(Fail, part.repairs("log_end"), "position %d lies behind the log end %d: the log was cut", part.Next.Offset, part.End)
	}
}

// repairs is what to do about a reason (processor/assign.go).
func (p *Partition) repairs(reason string) string {
	switch reason {
	case "outputs_gone":
		return fmt.Sprintf("dedup repair %s --assume committed|aborted --reason ...", p)
	case "topics":
		return "dedup topics ensure " + p.Topic
	case "rights":
		return "dedup doctor --acls"
	case "dead_letter":
		return "raise max.message.bytes of the dead-letter topic, or take compact out of its cleanup.policy: dedup topics check"
	}
	return "restore the log, or delete the topic and create it again"
}

// lost says why outputs have to be read back.
func (p *Partition) lost() string {
	switch {
	case p.Stand.Ours:
		return fmt.Sprintf("PostgreSQL lost what is committed up to %d", p.Stand.At.Offset)
	case p.Stand.Found:
		return fmt.Sprintf("another tool set offset %d", p.Offset)
	}
	return "offset deleted"
}

// unknown are the records that may have outputs.
func (p *Partition) unknown() string {
	from, to := p.Stand.From.Offset, p.Stand.At.Offset
	if !p.Stand.Ours && p.Row != nil {
		to = max(p.Row.D.Offset, from)
	}
	if to <= from {
		return fmt.Sprintf("records from %d on", from)
	}
	return fmt.Sprintf("%d..%d", from, to-1)
}
