package doctor

const areaDrained = "drained"

// JudgeDrained is pure: whether each raw partition is filtered to its end and
// nothing is held, so that the topics or the cluster may be left.
func (p *Positions) JudgeDrained() (fs Findings) {
	waiting := 0
	for i := range p.Partitions {
		part := &p.Partitions[i]
		before := len(fs)
		p.judgeHeld(&fs, part, true)
		if len(fs) > before {
			continue
		}
		why := part.undrained()
		if why == "" {
			continue
		}
		if waiting++; waiting <= maxNamed {
			fs.add(Fail, areaDrained, "stop the senders, let the filter run until nothing is left, then stop it", "%s: %s", part, why)
		}
	}
	if waiting > maxNamed {
		fs.add(Fail, areaDrained, "", "and %d partitions more", waiting-maxNamed)
	}
	return fs.orOK(areaDrained, "%s of %s filtered to the end: committed = decided = end, nothing is held", counted(len(p.Partitions), "partition"), counted(len(p.topics()), "raw topic"))
}

func (p *Positions) topics() map[string]bool {
	all := map[string]bool{}
	for i := range p.Partitions {
		all[p.Partitions[i].Topic] = true
	}
	return all
}

// undrained says what is left of a partition, or "".
func (p *Partition) undrained() string {
	switch row := p.Row; {
	case p.Open:
		return "an open transaction holds the group's offset"
	case p.Stable < p.End:
		return "a sender's transaction is open"
	case row == nil && p.Start == p.End:
		return "" // nothing was ever there, or it is gone
	case row == nil:
		return "no record of it was filtered yet"
	case row.W == row.D && row.W.Offset >= p.End:
		return "" // whatever the group's offset says
	case p.isForeign():
		return "another tool set the group's offset: run the filter until it has committed"
	case p.Stand.Learns:
		return "PostgreSQL has to learn what Kafka has committed: run the filter"
	case row.W.Offset < p.End && p.committed() >= p.End:
		return "filtered to the end, and the ledger has not noted it yet: start and stop the filter"
	case row.W.Offset < p.End:
		return counted(int(p.End-p.committed()), "offset") + " left"
	}
	return "records were decided and not committed"
}
