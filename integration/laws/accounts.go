package laws

import "fmt"

// HoursClose checks: dedup_hour says of each scope and status what the outputs say, in
// records and bytes, and so in = NEW + SEEN + DRIFT + INVALID.
func HoursClose(o *Observation) []error {
	return hoursClose(o, o.Outputs, func(a Account) Account { return a })
}

func hoursClose(o *Observation, outputs []*Output, as func(Account) Account) (faults []error) {
	told := map[Account]Tally{}
	for _, out := range outputs {
		s := o.Sent[out.Origin]
		if s == nil {
			continue
		}
		a := as(Account{s.Account(), out.Status()})
		n := told[a]
		told[a] = Tally{n.Count + 1, n.Bytes + int64(len(s.Value))}
	}
	for a, n := range told {
		if got := o.Hours[a]; got != n {
			faults = append(faults, fmt.Errorf("accounts: dedup_hour has %+v for %s %s, the outputs %+v", got, a.Scope, a.Status, n))
		}
	}
	for a, n := range o.Hours {
		if _, ok := told[a]; !ok && n != (Tally{}) {
			faults = append(faults, fmt.Errorf("accounts: dedup_hour has %+v for %s %s, the outputs none", n, a.Scope, a.Status))
		}
	}
	return faults
}

// HoursSum checks less where PostgreSQL has lost commits: of the scopes named, whose
// windows are short, NEW, SEEN and DRIFT may be shifted against each other, and
// their sum is right (docs/operations.md).
func HoursSum(o *Observation, short func(scope string) bool) []error {
	summed := *o
	summed.Hours = map[Account]Tally{}
	summed.Outputs = nil
	for a, n := range o.Hours {
		if short(a.Scope) && a.Status != "INVALID" {
			a.Status = "decided"
		}
		old := summed.Hours[a]
		summed.Hours[a] = Tally{old.Count + n.Count, old.Bytes + n.Bytes}
	}
	return hoursClose(&summed, o.Outputs, func(a Account) Account {
		if short(a.Scope) && a.Status != "INVALID" {
			a.Status = "decided"
		}
		return a
	})
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
