package integration

import "fmt"

// hoursClose: dedup_hour says of each scope and status what the outputs say, in
// records and bytes, and so in = NEW + SEEN + DRIFT + INVALID.
func hoursClose(o *observation) (faults []error) {
	told := map[account]tally{}
	for _, out := range o.outputs {
		s := o.sent[out.origin]
		if s == nil {
			continue
		}
		a := account{s.account(), out.status()}
		n := told[a]
		told[a] = tally{n.count + 1, n.bytes + int64(len(s.Value))}
	}
	for a, n := range told {
		if got := o.hours[a]; got != n {
			faults = append(faults, fmt.Errorf("accounts: dedup_hour has %+v for %s %s, the outputs %+v", got, a.scope, a.status, n))
		}
	}
	for a, n := range o.hours {
		if _, ok := told[a]; !ok && n != (tally{}) {
			faults = append(faults, fmt.Errorf("accounts: dedup_hour has %+v for %s %s, the outputs none", n, a.scope, a.status))
		}
	}
	return faults
}

// positionsClose: after a clean stop the committed and the decided position of
// every raw partition are the same, behind its last record. Control records and
// what a sender aborted may lie between that and the position.
func positionsClose(o *observation) (faults []error) {
	if !o.stopped {
		return nil
	}
	last := map[place]place{}
	for p := range o.sent {
		at := place{topic: p.topic, partition: p.partition}
		if old, ok := last[at]; !ok || old.offset < p.offset {
			last[at] = p
		}
	}
	for at, p := range last {
		end, epoch := p.offset+1, int64(o.epochs[p])
		got, ok := o.positions[at]
		want := position{dEpoch: epoch, wEpoch: epoch, d: end, w: end}
		if ok && got.w > end && got.w <= o.logEnds[at] {
			want.d, want.w = got.w, got.w
		}
		if !ok || got != want {
			faults = append(faults, fmt.Errorf("position of %s/%d: %+v (there: %v), wanted %+v", at.topic, at.partition, got, ok, want))
		}
	}
	return faults
}
