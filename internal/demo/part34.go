package demo

import (
	"context"
	"fmt"

	"dedupledger/ledger"
)

// rewind is part 3. That nothing is emitted again is shown by one new message
// in each partition: a partition is read in order, so whatever a filter that
// obeys would emit again comes before it.
func (d *demo) rewind(ctx context.Context) error {
	d.line("3. Rewind. The group is set back to offset 0, as kafka-consumer-groups --reset-offsets --to-earliest does")
	if err := d.filter.stop(ctx); err != nil {
		return err
	}
	if err := d.broker.rewind(ctx); err != nil {
		return err
	}
	if err := d.filter.start(); err != nil {
		return err
	}
	if err := d.filter.awaitReady(ctx); err != nil {
		return err
	}
	if err := d.sendAndSettle(ctx, onePerPartition()); err != nil {
		return err
	}
	reported, err := d.filter.foreign(ctx)
	if err != nil {
		return err
	}
	t := d.broker.books.count(0)
	if reported < partitions {
		t.fault("only %d of %d foreign offsets were reported", reported, partitions)
	}
	d.line("   %-65sre-emitted %d   doubled %d   %s", fmt.Sprintf("%d partitions: not our offsets, reported and not obeyed", partitions),
		t.repeated, t.doubled, d.verdict(len(t.faults) == 0))
	d.explain(t.faults)
	return nil
}

// withoutRedis is part 4.
func (d *demo) withoutRedis(ctx context.Context) error {
	d.line("4. Redis emptied and stopped, then every message sent once more")
	d.services.EmptyRedis()
	d.services.StopRedis()
	from := len(d.broker.books.sent)
	if err := d.sendAndSettle(ctx, onceMore()); err != nil {
		return err
	}
	t := d.broker.books.count(from)
	d.line("   %-36s NEW %d   SEEN %-13s  %s", thousands(t.in-t.lost)+" answered by PostgreSQL alone",
		t.verdicts[ledger.New], thousands(t.verdicts[ledger.Seen]), d.verdict(t.is(0, distinct, 0, 0)))
	d.explain(t.faults)
	return nil
}
