package laws

import "fmt"

// HoursClose checks: dedup_hour says of each scope and status what the outputs say, in
// records and bytes, and so in = NEW + SEEN + DRIFT + INVALID. A record that lies in
// a gap has no output and may have been decided before: then it is counted.
func HoursClose(o *Observation) []error {
	return hoursClose(o, o.Outputs, func(a Account) Account { return a })
}

func hoursClose(o *Observation, outputs []*Output, as func(Account) Account) (faults []error) {
	told := map[Account]Tally{}
	for _, out := range outputs {
		if s := o.Sent[out.Origin]; s != nil {
			a := as(Account{s.Account(), out.Status()})
			told[a] = told[a].plus(s)
		}
	}
	gone := map[string]Tally{} // by scope
	for p := range o.Gone {
		if s := o.Sent[p]; s != nil {
			gone[s.Account()] = gone[s.Account()].plus(s)
		}
	}
	over := map[string]int64{}
	for a, n := range told {
		if got := o.Hours[a]; !got.between(n, gone[a.Scope]) {
			faults = append(faults, fmt.Errorf("accounts: dedup_hour has %+v for %s %s, the outputs %+v", got, a.Scope, a.Status, n))
		}
		over[a.Scope] += max(0, o.Hours[a].Count-n.Count)
	}
	for a, n := range o.Hours {
		if _, ok := told[a]; ok || n == (Tally{}) {
			continue
		}
		if !n.between(Tally{}, gone[a.Scope]) {
			faults = append(faults, fmt.Errorf("accounts: dedup_hour has %+v for %s %s, the outputs none", n, a.Scope, a.Status))
		}
		over[a.Scope] += n.Count
	}
	for scope, n := range over {
		if n > gone[scope].Count {
			faults = append(faults, fmt.Errorf("accounts: dedup_hour has %d records of %s more than the outputs, and %d lie in gaps", n, scope, gone[scope].Count))
		}
	}
	return faults
}

func (t Tally) plus(s *Sent) Tally { return Tally{t.Count + 1, t.Bytes + int64(len(s.Value))} }

// between: at least told, and at most so much more.
func (t Tally) between(told, more Tally) bool {
	return t.Count >= told.Count && t.Count <= told.Count+more.Count && t.Bytes >= told.Bytes && t.Bytes <= told.Bytes+more.Bytes
}

// HoursSum checks less where PostgreSQL has lost commits: of the scopes named, whose
// windows are short, NEW, SEEN and DRIFT may be shifted against each other, and
// their sum is right (docs/operations.md).
func HoursSum(o *Observation, short func(scope string) bool) []error {
	as := func(a Account) Account {
		if short(a.Scope) && a.Status != "INVALID" {
			a.Status = "decided"
		}
		return a
	}
	summed := *o
	summed.Hours = map[Account]Tally{}
	for a, n := range o.Hours {
		old := summed.Hours[as(a)]
		summed.Hours[as(a)] = Tally{old.Count + n.Count, old.Bytes + n.Bytes}
	}
	return hoursClose(&summed, o.Outputs, as)
}

// PositionsClose checks: after a clean stop the committed and the decided position of
// every raw partition are the same, behind its last record. Control records and
// what a sender aborted may lie between that and the position.
func PositionsClose(o *Observation) (faults []error) {
	if !o.Stopped {
		return nil
	}
	last := map[Place]Place{}
	for p := range o.Sent {
		at := Place{Topic: p.Topic, Partition: p.Partition}
		if o.Ended[at] {
			continue
		}
		if old, ok := last[at]; !ok || old.Offset < p.Offset {
			last[at] = p
		}
	}
	for at, p := range last {
		end, epoch := p.Offset+1, int64(o.Epochs[p])
		got, ok := o.Positions[at]
		want := Position{DEpoch: epoch, WEpoch: epoch, D: end, W: end}
		if ok && got.W > end && got.W <= o.LogEnds[at] {
			want.D, want.W = got.W, got.W
		}
		if !ok || got != want {
			faults = append(faults, fmt.Errorf("position of %s/%d: %+v (there: %v), wanted %+v", at.Topic, at.Partition, got, ok, want))
		}
	}
	return faults
}
