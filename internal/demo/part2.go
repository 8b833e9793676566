package demo

import (
	"context"
	"fmt"
	"time"

	"dedupledger/ledger"
)

// The kills come when so many of part 2's messages are decided and the ledger
// knows this many that are not handed on yet; at the latest, whatever it knows,
// when so many outputs are committed.
var kills = []struct{ decided, latest int }{{3000, 4500}, {6000, 8000}}

const wantAhead = 200

// killed is what a kill met.
type killed struct {
	pid       int
	committed int // of part 2
	ahead     int // registered, without a committed output
	back      time.Duration
	next      int // pid of the process that came back
}

// crash is part 2.
func (d *demo) crash(ctx context.Context) error {
	d.line("2. Crash. %s messages, %s of them resends; kill -9 in the middle, twice", thousands(distinct+resends), thousands(resends))
	from := len(d.broker.books.sent)
	if err := d.broker.send(ctx, traffic()); err != nil {
		return err
	}
	ahead, late := 0, false
	var last killed
	for _, at := range kills {
		k, err := d.killAt(ctx, from, at.decided, at.latest)
		if err != nil {
			return err
		}
		d.line("   killed pid %-6d %s outputs committed; the ledger had already registered %5s more", k.pid, pad(k.committed), thousands(k.ahead))
		ahead += k.ahead
		late = late || k.committed >= distinct+resends
		last = k
	}
	d.line("   pid %d back at work %.1f s after the kill", last.next, last.back.Seconds())
	if err := d.settle(ctx, from); err != nil {
		return err
	}
	t := d.broker.books.count(from)
	if late {
		t.fault("a kill came after the work was done")
	}
	v := t.verdicts
	d.line("   %-65slost %d   doubled %d   %s", fmt.Sprintf("in %s = NEW %s + SEEN %s + DRIFT %s + INVALID %s", thousands(t.in),
		thousands(v[ledger.New]), thousands(v[ledger.Seen]), thousands(v[ledger.Drift]), thousands(v[ledger.Invalid])),
		t.lost, t.repeated+t.doubled, d.verdict(t.is(distinct, resends, 0, 0)))
	d.explain(t.faults)
	if ahead > 0 {
		d.line(`   (a ledger that stores only "seen" would have thrown those %s messages away)`, thousands(ahead))
	} else {
		d.line("   (both kills fell between two batches: the ledger was not ahead this time)")
	}
	return nil
}

func pad(n int) string { return fmt.Sprintf("%6s", thousands(n)) }

// killAt kills the filter in the middle of its work, looks what the kill met,
// starts it again and waits for its first commit.
func (d *demo) killAt(ctx context.Context, from, decided, latest int) (killed, error) {
	if err := d.awaitMoment(ctx, from, decided, latest); err != nil {
		return killed{}, err
	}
	k := killed{pid: d.filter.pid()}
	at := time.Now()
	if err := d.filter.kill(); err != nil {
		return k, err
	}
	if err := d.registry.awaitDisconnected(ctx); err != nil {
		return k, err
	}
	committed, err := d.broker.committed(ctx)
	if err != nil {
		return k, err
	}
	k.committed = sum(committed) - from
	if k.ahead, err = d.registry.ahead(ctx, committed); err != nil {
		return k, err
	}
	if err := d.filter.start(); err != nil {
		return k, err
	}
	k.next = d.filter.pid()
	err = d.awaitCommitted(ctx, sum(committed)+1)
	k.back = time.Since(at)
	return k, err
}

// awaitMoment returns when a kill would meet the ledger ahead of the outputs.
func (d *demo) awaitMoment(ctx context.Context, from, decided, latest int) error {
	ctx, cancel := d.filter.alive(ctx)
	defer cancel()
	ctx, done := context.WithTimeoutCause(ctx, partWithin, fmt.Errorf("the filter did not get to %d messages within %s", decided, partWithin))
	defer done()
	return await(ctx, func() (bool, error) {
		offsets, err := d.broker.committed(ctx)
		if err != nil {
			return false, err
		}
		known, err := d.registry.decided(ctx)
		if err != nil {
			return false, err
		}
		committed := sum(offsets)
		return known-from >= decided && known-committed >= wantAhead || committed-from >= latest, nil
	})
}

// awaitCommitted returns when so many outputs are committed, counted from the
// start of the topic.
func (d *demo) awaitCommitted(ctx context.Context, n int) error {
	if n > len(d.broker.books.sent) {
		return nil // the work was done already
	}
	ctx, cancel := d.filter.alive(ctx)
	defer cancel()
	ctx, done := context.WithTimeoutCause(ctx, partWithin, fmt.Errorf("the filter did not come back within %s", partWithin))
	defer done()
	return await(ctx, func() (bool, error) {
		offsets, err := d.broker.committed(ctx)
		return sum(offsets) >= n, err
	})
}
