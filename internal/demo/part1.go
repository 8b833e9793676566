package demo

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"dedupledger/ledger"
)

// firstControl is the interchange everybody meets first.
const firstControl = "77001"

// example is a message of part 1 and what it is, in words.
type example struct {
	message
	what string
}

// examples are one interchange, its resends, and a broken one.
func examples() []example {
	all := partners()
	acme, beta := all[0], all[2]
	first := invoice(gln(0), firstControl, 5)
	key := edifactKey(gln(0), firstControl)
	return []example{
		{message{acme.scope, acme.partition, key, first, ledger.New}, "invoice interchange 77001"},
		{message{acme.scope, acme.partition, key, first, ledger.Seen}, "the same bytes again (partner got no receipt)"},
		{message{acme.scope, acme.partition, key, invoice(gln(0), firstControl, 6), ledger.Drift}, "77001 again, but quantity 5 is now 6"},
		{message{acme.scope, acme.partition, "", cut(invoice(gln(0), "77002", 5)), ledger.Invalid}, "77002, cut off in transit: no UNZ"},
		{message{beta.scope, beta.partition, key, first, ledger.New}, "77001 from another tenant"},
	}
}

// whatItDoes is part 1: each verdict once.
func (d *demo) whatItDoes(ctx context.Context) error {
	d.line("1. %-65s%-14s%-10s%s", "What it does", "sent as key", "verdict", "went to")
	var messages []message
	all := examples()
	for _, e := range all {
		messages = append(messages, e.message)
	}
	if err := d.sendAndSettle(ctx, messages); err != nil {
		return err
	}
	for i, e := range all {
		d.line("   %s", d.exampleLine(e, i))
	}
	t := d.broker.books.count(0)
	if !t.is(2, 1, 1, 1) {
		d.line("   %s", d.verdict(false))
		d.explain(t.faults)
	}
	return nil
}

func (d *demo) exampleLine(e example, i int) string {
	outs := d.broker.books.outputs[d.broker.books.sent[i].place]
	if len(outs) == 0 {
		return fmt.Sprintf("%-65s%-14s%-10s", e.what, e.scope, "none")
	}
	o := &outs[0]
	note := ""
	switch o.Verdict {
	case ledger.Seen:
		note = fmt.Sprintf("repeat %s of %s", o.retry, o.FirstSeenAt.Format("15:04:05.000"))
	case ledger.Drift:
		note = fmt.Sprintf("%.8s -> %.8s", o.first, hex.EncodeToString(o.PayloadSHA256[:]))
	case ledger.Invalid:
		note = o.Reason
	default:
	}
	return strings.TrimRight(fmt.Sprintf("%-65s%-14s%-10s%-15s %s", e.what, e.scope, o.Verdict, o.place, note), " ")
}

// sendAndSettle sends messages and waits for their outputs. Outputs that do not
// come are no error: the books show what is lost.
func (d *demo) sendAndSettle(ctx context.Context, messages []message) error {
	from := len(d.broker.books.sent)
	if err := d.broker.send(ctx, messages); err != nil {
		return err
	}
	return d.settle(ctx, from)
}

func (d *demo) settle(ctx context.Context, from int) error {
	alive, cancel := d.filter.alive(ctx)
	defer cancel()
	alive, done := context.WithTimeout(alive, partWithin)
	defer done()
	err := d.broker.settle(alive, from)
	if err != nil && context.Cause(alive) == context.DeadlineExceeded { //nolint:errorlint // the cause itself
		return nil
	}
	return err
}
