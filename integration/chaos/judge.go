package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"dedupledger/integration/laws"
)

// verdict of a campaign.
type verdict struct {
	records, gone, unread   int
	byStatus                map[string]int
	lost, doubled, wrong    int
	across                  int // keys that doubled across raw partitions after PostgreSQL lost commits
	witnesses               int64
	gaps, open, overlapping int
	faults                  []error
}

const shownFaults = 30

// judge reads everything back and holds it against the laws.
func (c *campaign) judge(ctx context.Context) error {
	c.say("judging")
	o, err := c.observe(ctx)
	if err != nil {
		return err
	}
	v := &verdict{records: len(o.Sent), gone: len(o.Gone) - c.unread, unread: c.unread, byStatus: map[string]int{}}
	for _, out := range o.Outputs {
		v.byStatus[out.Status()]++
	}
	v.blame(c.unsettled)
	c.lawOne(o, v)
	c.lawTwo(o, v)
	for _, law := range []func(*laws.Observation) []error{
		laws.NothingLost, laws.Verdicts, laws.Repeats, laws.OrderKept, laws.Untouched, laws.OurHeaders, laws.PositionsClose,
	} {
		v.blame(law(o))
	}
	if c.losses == 0 {
		v.blame(laws.HoursClose(o))
	} else {
		v.blame(laws.HoursSum(o, isShort))
	}
	v.blame(c.meter.faults())
	if err := c.askDatabase(ctx, v); err != nil {
		return err
	}
	if err := c.askTransactions(ctx, v); err != nil {
		return err
	}
	c.report(v)
	c.evidence(ctx, o, v.faults)
	return v.err()
}

func isShort(scope string) bool { return strings.HasSuffix(scope, ":short") }

func (v *verdict) blame(faults []error) {
	v.wrong += len(faults)
	v.faults = append(v.faults, faults...)
}

func (v *verdict) err() error {
	if len(v.faults) == 0 {
		return nil
	}
	shown := v.faults
	if n := len(shown); n > shownFaults {
		shown = append(shown[:shownFaults:shownFaults], fmt.Errorf("and %d more", n-shownFaults))
	}
	return errors.Join(shown...)
}

// lawOne counts what it finds as lost or doubled.
func (c *campaign) lawOne(o *laws.Observation, v *verdict) {
	found := map[laws.Place]int{}
	for _, out := range o.Outputs {
		found[out.Origin]++
	}
	for p := range o.Sent {
		switch n := found[p]; {
		case n == 0 && !o.Gone[p]:
			v.lost++
		case n > 1:
			v.doubled++
		}
	}
	v.faults = append(v.faults, laws.LawOne(o)...)
}

// lawTwo is held over everything, or per raw partition where PostgreSQL has lost
// commits: then a key can double across partitions, and that is counted.
func (c *campaign) lawTwo(o *laws.Observation, v *verdict) {
	faults := laws.LawTwo(o)
	if c.losses == 0 {
		v.doubled += len(faults)
		v.faults = append(v.faults, faults...)
		return
	}
	byPartition := map[laws.Place][]*laws.Output{}
	for _, out := range o.Outputs {
		at := laws.Place{Topic: out.Origin.Topic, Partition: out.Origin.Partition}
		byPartition[at] = append(byPartition[at], out)
	}
	within := 0
	for _, outs := range byPartition {
		part := *o
		part.Outputs = outs
		found := laws.LawTwo(&part)
		within += len(found)
		v.faults = append(v.faults, found...)
	}
	v.doubled += within
	v.across = len(faults) - within
}

// askDatabase looks for what only the ledger's tables tell: rows of one key that
// live at once, gaps, and what Redis remembered.
func (c *campaign) askDatabase(ctx context.Context, v *verdict) error {
	db, err := c.s.asAdmin(ctx)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	const overlapping = `select count(*) from dedup_ledger a join dedup_ledger b on a.h = b.h and a.scope = b.scope and a.key = b.key
		and (a.first_seen_at, a.origin_topic, a.origin_partition, a.origin_offset) < (b.first_seen_at, b.origin_topic, b.origin_partition, b.origin_offset)
		and b.first_seen_at < least(a.expires_at, coalesce(a.closed_at, 'infinity')) and b.first_seen_at < least(b.expires_at, coalesce(b.closed_at, 'infinity'))`
	for _, q := range []struct {
		sql string
		to  any
	}{
		{overlapping, &v.overlapping},
		{`select count(*) from dedup_gap where kind = 'no_output'`, &v.gaps},
		{`select witness_kafka from dedup_meta`, &v.witnesses},
	} {
		if err := db.QueryRow(ctx, q.sql).Scan(q.to); err != nil {
			return fmt.Errorf("asking the ledger: %w", err)
		}
	}
	if v.overlapping > 0 && c.losses == 0 {
		v.faults = append(v.faults, fmt.Errorf("%d pairs of rows of one key live at once", v.overlapping))
	}
	if v.gaps > 0 && c.losses == 0 {
		v.faults = append(v.faults, fmt.Errorf("%d ranges without an output that no gap explains", v.gaps))
	}
	return nil
}

// askTransactions: nobody may have one open after a clean stop.
func (c *campaign) askTransactions(ctx context.Context, v *verdict) error {
	all, err := c.s.admin.ListTransactions(ctx, nil, []string{"Ongoing", "PrepareCommit", "PrepareAbort"})
	if err != nil {
		return fmt.Errorf("asking for open transactions: %w", err)
	}
	all.Each(func(t kadm.ListedTransaction) {
		v.open++
		v.faults = append(v.faults, fmt.Errorf("transaction %s is %s", t.TxnID, t.State))
	})
	return nil
}
