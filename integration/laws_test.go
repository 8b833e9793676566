package integration

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// shownErrors of a judgement; the rest is counted.
const shownErrors = 20

// clockSlack between the tests' clock and PostgreSQL's, on one machine.
const clockSlack = 2 * time.Second

// judge holds the observation against the laws of ARCHITECTURE §2 and the wire
// contract, and says all that is wrong. It does no I/O.
func (o *observation) judge() error {
	var faults []error
	for _, law := range []func(*observation) []error{
		lawOne, lawTwo, nothingLost, verdicts, repeats, orderKept, untouched, ourHeaders, hoursClose, positionsClose,
	} {
		faults = append(faults, law(o)...)
	}
	if n := len(faults); n > shownErrors {
		faults = append(faults[:shownErrors], fmt.Errorf("and %d more", n-shownErrors))
	}
	return errors.Join(faults...)
}

// lawOne: every raw record has exactly one committed output, and there is no
// other output.
func lawOne(o *observation) (faults []error) {
	found := map[place][]string{}
	for _, out := range o.outputs {
		found[out.origin] = append(found[out.origin], out.String())
		if o.sent[out.origin] == nil {
			faults = append(faults, fmt.Errorf("law 1: %s comes from %s, which was never committed to raw", out, out.origin))
		}
	}
	for p := range o.sent {
		if n := len(found[p]); n != 1 {
			faults = append(faults, fmt.Errorf("law 1: %s has %d outputs: %s", p, n, strings.Join(found[p], ", ")))
		}
	}
	return faults
}

// scopedKey is what law 2 counts by.
type scopedKey struct{ scope, key string }

// accepted are the clean records by ledger scope and key, in order of their
// acceptance. Copies by command do not count.
func (o *observation) accepted() map[scopedKey][]*output {
	byKey := map[scopedKey][]*output{}
	for _, out := range o.outputs {
		s := o.sent[out.origin]
		if s == nil || out.kind != clean || header(out.record, "dedup-replay-id") != "" {
			continue
		}
		k := scopedKey{s.ledgerScope(), s.Want.Key}
		byKey[k] = append(byKey[k], out)
	}
	for _, outs := range byKey {
		slices.SortStableFunc(outs, func(a, b *output) int {
			return cmp.Compare(header(a.record, "dedup-first-seen-at"), header(b.record, "dedup-first-seen-at"))
		})
	}
	return byKey
}

// lawTwo: at most one record per ledger scope, key and window is in clean. The
// window's length is the sender's knowledge; its start is checked against the
// time of sending.
func lawTwo(o *observation) (faults []error) {
	for k, outs := range o.accepted() {
		var before time.Time // end of the window before
		for i, out := range outs {
			s := o.sent[out.origin]
			first, end, err := windowOf(out)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			if got := end.Sub(first); got != s.window() {
				faults = append(faults, fmt.Errorf("law 2: window of %s is %s, wanted %s", out, got, s.window()))
			}
			if first.Before(s.at.Add(-clockSlack)) || first.After(o.taken.Add(clockSlack)) {
				faults = append(faults, fmt.Errorf("law 2: %s was first seen at %s, but sent after %s", out, first, s.at))
			}
			if i > 0 && first.Before(before) {
				faults = append(faults, fmt.Errorf("law 2: %s and %s are both in clean for %s %s within one window", outs[i-1], out, k.scope, k.key))
			}
			before = first.Add(s.window())
		}
	}
	return faults
}

func windowOf(out *output) (first, end time.Time, err error) {
	first, err1 := time.Parse(time.RFC3339Nano, header(out.record, "dedup-first-seen-at"))
	end, err2 := time.Parse(time.RFC3339Nano, header(out.record, "dedup-expires-at"))
	if err := errors.Join(err1, err2); err != nil {
		return first, end, fmt.Errorf("window headers of %s: %w", out, err)
	}
	return first, end, nil
}

// nothingLost: of the copies of a key at least one is in clean.
func nothingLost(o *observation) (faults []error) {
	accepted := o.accepted()
	missing := map[scopedKey]place{}
	for p, s := range o.sent {
		k := scopedKey{s.ledgerScope(), s.Want.Key}
		if s.Want.Code == "" && len(accepted[k]) == 0 {
			missing[k] = p
		}
	}
	for k, p := range missing {
		faults = append(faults, fmt.Errorf("law 3: no copy of %s %s is in clean, e.g. %s", k.scope, k.key, p))
	}
	return faults
}

// verdicts: what the sender knows of each record, and the topic, agree with the
// status.
func verdicts(o *observation) (faults []error) {
	for _, out := range o.outputs {
		s := o.sent[out.origin]
		if s == nil {
			continue
		}
		if err := verdictOf(o, out, s); err != nil {
			faults = append(faults, fmt.Errorf("verdict on %s in %s: %w", out.origin, out, err))
		}
	}
	return faults
}

func verdictOf(o *observation, out *output, s *sent) error {
	status, reason := out.status(), header(out.record, "dedup-reason")
	if got := header(out.record, "dedup-key"); s.Want.Key != "" && got != s.Want.Key && (s.Want.Code == "" || got != "") {
		return fmt.Errorf("key %q, wanted %q", got, s.Want.Key)
	}
	switch out.kind {
	case clean:
		if out.record.Topic != o.cleanOf[out.origin.topic] {
			return fmt.Errorf("wanted topic %s", o.cleanOf[out.origin.topic])
		}
		if status != "NEW" || s.Want.Code != "" {
			return fmt.Errorf("status %s in clean, wanted code %q", status, s.Want.Code)
		}
	case duplicates:
		if (status != "SEEN" && status != "DRIFT") || s.Want.Code != "" {
			return fmt.Errorf("status %s in duplicates, wanted code %q", status, s.Want.Code)
		}
	case deadLetter:
		if status != "INVALID" || s.Want.Code == "" || reason != s.Want.Code {
			return fmt.Errorf("status %s, reason %q, wanted code %q", status, reason, s.Want.Code)
		}
	}
	return nil
}

// repeats: a SEEN or DRIFT names the accepted record of its key, and its own
// bytes decide which of both it is.
func repeats(o *observation) (faults []error) {
	accepted := map[place]bool{}
	for _, out := range o.outputs {
		accepted[out.origin] = accepted[out.origin] || out.kind == clean
	}
	for _, out := range o.outputs {
		s := o.sent[out.origin]
		if s == nil || out.kind != duplicates {
			continue
		}
		if err := repeatOf(o, out, s, accepted); err != nil {
			faults = append(faults, fmt.Errorf("repeat %s of %s: %w", out, out.origin, err))
		}
	}
	return faults
}

func repeatOf(o *observation, out *output, s *sent, accepted map[place]bool) error {
	at, err := parsePlace(header(out.record, "dedup-first-origin"))
	if err != nil {
		return err
	}
	first := o.sent[at]
	switch {
	case first == nil || !accepted[at]:
		return fmt.Errorf("first %s is not in clean", at)
	case at == out.origin:
		return errors.New("is called a repeat of itself")
	case first.ledgerScope() != s.ledgerScope() || first.Want.Key != s.Want.Key:
		return fmt.Errorf("first %s has another scope or key", at)
	case bytes.Equal(first.Value, s.Value) != (out.status() == "SEEN"):
		return fmt.Errorf("status %s, but bytes equal to the first's: %v", out.status(), bytes.Equal(first.Value, s.Value))
	}
	if got, want := header(out.record, "dedup-first-id"), o.idOf(at); got != want {
		return fmt.Errorf("first id %q, wanted %q", got, want)
	}
	return nil
}

// idOf is the dedup-id of an accepted raw record: UUIDv5 (RFC 9562 §5.5) of
// "partition/epoch/offset" in the namespace of the topic's id.
func (o *observation) idOf(p place) string {
	return uuid.NewSHA1(o.topicIDs[p.topic], fmt.Appendf(nil, "%d/%d/%d", p.partition, o.epochs[p], p.offset)).String()
}
