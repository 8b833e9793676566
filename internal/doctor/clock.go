package doctor

import (
	"strings"
	"time"
)

const areaClocks = "clocks"

// clocksApart is what clocks may differ: NTP keeps machines within milliseconds.
const clocksApart = 2 * time.Second

// Reading is one look at another machine's clock, between two at ours.
type Reading struct {
	Who                   string
	Before, Theirs, After time.Time
}

// Ahead is by how much the other clock is ahead of ours at least, negative where
// it is behind; 0 where both may be right.
func (r Reading) Ahead() time.Duration {
	switch {
	case r.Theirs.Before(r.Before):
		return r.Theirs.Sub(r.Before)
	case r.Theirs.After(r.After):
		return r.Theirs.Sub(r.After)
	}
	return 0
}

// JudgeClocks is pure. Windows are counted by PostgreSQL's clock alone, so a
// difference changes no verdict; it makes logs and ages wrong, and certificates.
func JudgeClocks(readings ...Reading) (fs Findings) {
	var who []string
	for _, r := range readings {
		if r.Theirs.IsZero() {
			continue
		}
		who = append(who, r.Who)
		if d := r.Ahead(); d.Abs() > clocksApart {
			where := "ahead of"
			if d < 0 {
				where = "behind"
			}
			fs.add(Warn, areaClocks, "NTP on both machines", "the clock of %s is %s %s this machine's: windows go by PostgreSQL's clock, retention by the brokers' and the senders'", r.Who, d.Abs().Round(time.Millisecond), where)
		}
	}
	if len(who) == 0 {
		return fs
	}
	return fs.orOK(areaClocks, "this machine and %s within %s", strings.Join(who, ", "), clocksApart)
}
