package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

const areaLag = "lag"

// Backlog is what a raw topic has that is not filtered yet.
type Backlog struct {
	Topic     string
	Records   int64         // offsets, transaction markers among them
	Behind    int           // partitions with any
	Oldest    time.Duration // age of the oldest record of them, by its timestamp; 0: none, or unknown
	Retention time.Duration // of the topic; 0: unknown
}

// committed is how far a partition is known to be filtered.
func (p *Partition) committed() int64 {
	var at int64
	switch {
	case p.Row != nil:
		at = p.Row.W.Offset
		if p.Stand.Ours {
			at = max(at, p.Offset)
		}
	case p.Stand.Found:
		at = p.Offset
	}
	return max(at, p.Start)
}

// ageSteps halve a retention so often that what is left is minutes of days.
const ageSteps = 10

// AskBacklog adds the partitions up, and asks the brokers for the oldest record
// that is left, by bisection of time: no record is fetched.
func AskBacklog(ctx context.Context, adm *kadm.Client, ps []Partition, retention map[string]time.Duration) ([]Backlog, error) {
	byTopic := map[string]*Backlog{}
	var all []*Backlog
	for i := range ps {
		p := &ps[i]
		b := byTopic[p.Topic]
		if b == nil {
			b = &Backlog{Topic: p.Topic, Retention: retention[p.Topic]}
			byTopic[p.Topic], all = b, append(all, b)
		}
		if n := p.Stable - p.committed(); n > 0 {
			b.Records, b.Behind = b.Records+n, b.Behind+1
		}
	}
	out := make([]Backlog, 0, len(all))
	for _, b := range all {
		if b.Behind > 0 {
			if err := b.age(ctx, adm, ps); err != nil {
				return nil, err
			}
		}
		out = append(out, *b)
	}
	return out, nil
}

// age finds the earliest time such that each partition's first record at or after
// it is one that is filtered already, or none: whatever is left is older.
func (b *Backlog) age(ctx context.Context, adm *kadm.Client, ps []Partition) error {
	reach := b.Retention
	if reach <= 0 || reach > 400*24*time.Hour {
		reach = 400 * 24 * time.Hour
	}
	now := time.Now()
	young, old := time.Duration(0), 2*reach
	for range ageSteps + 2 {
		middle := young + (old-young)/2
		listed, err := adm.ListOffsetsAfterMilli(ctx, now.Add(-middle).UnixMilli(), b.Topic)
		if err != nil {
			return fmt.Errorf("asking for the age of the backlog of %s: %w", b.Topic, err)
		}
		// A first record at or after that time that lies behind the position
		// leaves older ones unfiltered.
		older := slices.ContainsFunc(ps, func(p Partition) bool {
			l, ok := listed.Lookup(b.Topic, p.Number)
			return ok && p.Topic == b.Topic && l.Err == nil && p.Stable > p.committed() && l.Offset > p.committed()
		})
		if older {
			young = middle
		} else {
			old = middle
		}
	}
	b.Oldest = old
	return nil
}

// JudgeBacklog is pure. shortest is the shortest window.
func JudgeBacklog(all []Backlog, shortest time.Duration) (fs Findings) {
	for _, b := range all {
		left := "retention unknown"
		if b.Retention > 0 {
			left = "an outage of " + days(b.Retention) + " loses nothing"
		}
		if b.Behind == 0 {
			fs.add(OK, areaLag, "", "%s: nothing waits; %s", b.Topic, left)
			continue
		}
		if b.Retention > 0 {
			left = fmt.Sprintf("retention %s leaves %s until unread records are deleted", days(b.Retention), days(max(0, b.Retention-b.Oldest)))
		}
		text := fmt.Sprintf("%s: %s behind in %s, the oldest at most %s old; %s", b.Topic, counted(int(b.Records), "offset"), counted(b.Behind, "partition"), days(b.Oldest), left)
		switch {
		case b.Retention > 0 && b.Oldest > b.Retention/2:
			fs.add(Fail, areaLag, "raise retention.ms of the topic until the filter has caught up", "%s", text)
		case shortest > 0 && b.Oldest > shortest/2:
			fs.add(Warn, areaLag, "", "%s. Older than half the shortest window (%s): resends whose original waits are NEW when their window ends before", text, days(shortest))
		default:
			fs.add(OK, areaLag, "", "%s", text)
		}
	}
	return fs
}
