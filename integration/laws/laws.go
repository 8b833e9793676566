package laws

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

// Fault is a broken law and a raw record that it concerns.
type Fault struct {
	Of  Place
	Err error
}

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap gives what is wrong.
func (f *Fault) Unwrap() error { return f.Err }

// Judge holds the observation against the laws of ARCHITECTURE §2 and the wire
// contract, and says all that is wrong. It does no I/O.
func (o *Observation) Judge() error {
	var faults []error
	for _, law := range []func(*Observation) []error{
		LawOne, LawTwo, NothingLost, Verdicts, Repeats, OrderKept, Untouched, OurHeaders, HoursClose, PositionsClose,
	} {
		faults = append(faults, law(o)...)
	}
	if n := len(faults); n > shownErrors {
		faults = append(faults[:shownErrors], fmt.Errorf("and %d more", n-shownErrors))
	}
	return errors.Join(faults...)
}

// LawOne checks: every raw record has exactly one committed output, and there is no
// other output.
func LawOne(o *Observation) (faults []error) {
	found := map[Place][]string{}
	for _, out := range o.Outputs {
		found[out.Origin] = append(found[out.Origin], out.String())
		if o.Sent[out.Origin] == nil {
			faults = append(faults, fmt.Errorf("law 1: %s comes from %s, which was never committed to raw", out, out.Origin))
		}
	}
	for p := range o.Sent {
		switch n := len(found[p]); {
		case o.Gone[p] && n > 0:
			faults = append(faults, &Fault{Of: p, Err: fmt.Errorf("law 1: %s lies in a gap and has %d outputs: %s", p, n, strings.Join(found[p], ", "))})
		case !o.Gone[p] && n != 1:
			faults = append(faults, &Fault{Of: p, Err: fmt.Errorf("law 1: %s has %d outputs: %s", p, n, strings.Join(found[p], ", "))})
		}
	}
	return faults
}

// scopedKey is what law 2 counts by.
type scopedKey struct{ scope, key string }

// accepted are the clean records by ledger scope and key, aliases too, in order of their
// acceptance. Copies by command do not count.
func (o *Observation) accepted() map[scopedKey][]*Output {
	byKey := map[scopedKey][]*Output{}
	for _, out := range o.Outputs {
		s := o.Sent[out.Origin]
		if s == nil || out.Kind != Clean || Header(out.Record, "dedup-replay-id") != "" || s.Want.Observe && out.Status() != "NEW" {
			continue // what is only observed counts where it would be in clean anyway
		}
		for _, k := range s.keys() {
			byKey[k] = append(byKey[k], out)
		}
	}
	for _, outs := range byKey {
		slices.SortStableFunc(outs, func(a, b *Output) int {
			return cmp.Compare(Header(a.Record, "dedup-first-seen-at"), Header(b.Record, "dedup-first-seen-at"))
		})
	}
	return byKey
}

// LawTwo checks: at most one record per ledger scope, key and window is in clean. The
// window's length is the sender's knowledge; its start is checked against the
// time of sending.
func LawTwo(o *Observation) (faults []error) {
	for k, outs := range o.accepted() {
		var before time.Time // end of the window before
		for i, out := range outs {
			s := o.Sent[out.Origin]
			first, end, err := windowOf(out)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			if got := end.Sub(first); got != s.Window() {
				faults = append(faults, fmt.Errorf("law 2: window of %s is %s, wanted %s", out, got, s.Window()))
			}
			if first.Before(s.At.Add(-clockSlack)) || first.After(o.Taken.Add(clockSlack)) {
				faults = append(faults, fmt.Errorf("law 2: %s was first seen at %s, but sent after %s", out, first, s.At))
			}
			if i > 0 && first.Before(before) {
				faults = append(faults, &Fault{Of: out.Origin, Err: fmt.Errorf("law 2: %s and %s are both in clean for %s %s within one window", outs[i-1], out, k.scope, k.key)})
			}
			before = first.Add(s.Window())
		}
	}
	return faults
}

func windowOf(out *Output) (first, end time.Time, err error) {
	first, err1 := time.Parse(time.RFC3339Nano, Header(out.Record, "dedup-first-seen-at"))
	end, err2 := time.Parse(time.RFC3339Nano, Header(out.Record, "dedup-expires-at"))
	if err := errors.Join(err1, err2); err != nil {
		return first, end, fmt.Errorf("window headers of %s: %w", out, err)
	}
	return first, end, nil
}

// NothingLost checks: of the copies of a key at least one is in clean. A record with
// aliases is a copy by one of its keys; the others stay free.
func NothingLost(o *Observation) (faults []error) {
	there := map[scopedKey]bool{}
	for k := range o.accepted() {
		there[k] = true
	}
	// A first in a gap was decided, perhaps, and its copies were SEEN of it.
	for p := range o.Gone {
		if s := o.Sent[p]; s != nil {
			for _, k := range s.keys() {
				there[k] = true
			}
		}
	}
	missing := map[scopedKey]Place{}
	for p, s := range o.Sent {
		if s.Want.Code == "" && !slices.ContainsFunc(s.keys(), func(k scopedKey) bool { return there[k] }) {
			missing[scopedKey{s.LedgerScope(), s.Want.Key}] = p
		}
	}
	for k, p := range missing {
		faults = append(faults, &Fault{Of: p, Err: fmt.Errorf("law 3: no copy of %s %s is in clean, e.g. %s", k.scope, k.key, p)})
	}
	return faults
}

// Verdicts checks: what the sender knows of each record, and the topic, agree with the
// status.
func Verdicts(o *Observation) (faults []error) {
	for _, out := range o.Outputs {
		s := o.Sent[out.Origin]
		if s == nil {
			continue
		}
		if err := verdictOf(o, out, s); err != nil {
			faults = append(faults, &Fault{Of: out.Origin, Err: fmt.Errorf("verdict on %s in %s: %w", out.Origin, out, err)})
		}
	}
	return faults
}

func verdictOf(o *Observation, out *Output, s *Sent) error {
	status, reason := out.Status(), Header(out.Record, "dedup-reason")
	if got := Header(out.Record, "dedup-key"); s.Want.Key != "" && got != s.Want.Key && (s.Want.Code == "" || got != "") {
		return fmt.Errorf("key %q, wanted %q", got, s.Want.Key)
	}
	switch out.Kind {
	case Clean:
		if out.Record.Topic != o.CleanOf[out.Origin.Topic] {
			return fmt.Errorf("wanted topic %s", o.CleanOf[out.Origin.Topic])
		}
		if s.Want.Observe && status != "NEW" {
			return observedVerdict(status, reason, s)
		}
		if status != "NEW" || s.Want.Code != "" {
			return fmt.Errorf("status %s in clean, wanted code %q", status, s.Want.Code)
		}
	case Duplicates:
		if s.Want.Observe {
			return errors.New("its flow is only observed: wanted in clean")
		}
		if (status != "SEEN" && status != "DRIFT") || s.Want.Code != "" {
			return fmt.Errorf("status %s in duplicates, wanted code %q", status, s.Want.Code)
		}
	case DeadLetter:
		if s.Want.Observe && s.Want.Code != "record.too_large" && s.Want.Code != "output.rejected" {
			return errors.New("its flow is only observed: wanted in clean")
		}
		if status != "INVALID" || s.Want.Code == "" || reason != s.Want.Code {
			return fmt.Errorf("status %s, reason %q, wanted code %q", status, reason, s.Want.Code)
		}
	}
	return nil
}

// observedVerdict is of a record that is in clean for its flow is only observed.
func observedVerdict(status, reason string, s *Sent) error {
	switch {
	case (status == "SEEN" || status == "DRIFT") && s.Want.Code == "":
	case status == "INVALID" && s.Want.Code != "" && reason == s.Want.Code:
	default:
		return fmt.Errorf("status %s, reason %q, wanted code %q", status, reason, s.Want.Code)
	}
	return nil
}

// Repeats checks: a SEEN or DRIFT names the accepted record of its key, and its own
// bytes decide which of both it is.
func Repeats(o *Observation) (faults []error) {
	byOrigin := map[Place]*Output{}
	for _, out := range o.Outputs {
		if byOrigin[out.Origin] == nil || out.Kind == Clean {
			byOrigin[out.Origin] = out
		}
	}
	accepted := o.accepted()
	for _, out := range o.Outputs {
		s := o.Sent[out.Origin]
		if s != nil && s.Want.Observe && out.Kind == Clean && (out.Status() == "SEEN" || out.Status() == "DRIFT") {
			if err := observedRepeatOf(out, s, accepted[scopedKey{s.LedgerScope(), s.Want.Key}], o); err != nil {
				faults = append(faults, fmt.Errorf("repeat %s of %s: %w", out, out.Origin, err))
			}
		}
		if s == nil || out.Kind != Duplicates {
			continue
		}
		if err := repeatOf(o, out, s, byOrigin); err != nil {
			faults = append(faults, &Fault{Of: out.Origin, Err: fmt.Errorf("repeat %s of %s: %w", out, out.Origin, err)})
		}
	}
	return faults
}

// observedRepeatOf finds the first of a repeat that is in clean by when it was seen:
// nothing there names it.
func observedRepeatOf(out *Output, s *Sent, accepted []*Output, o *Observation) error {
	seen := Header(out.Record, "dedup-first-seen-at")
	for _, first := range accepted {
		if Header(first.Record, "dedup-first-seen-at") != seen {
			continue
		}
		if same := bytes.Equal(o.Sent[first.Origin].Value, s.Value); same != (out.Status() == "SEEN") {
			return fmt.Errorf("status %s, but bytes equal to the first's: %v", out.Status(), same)
		}
		return nil
	}
	for p := range o.Gone {
		if first := o.Sent[p]; first != nil && slices.Contains(first.keys(), s.keys()[0]) {
			return nil // an orphan: decided, then gone
		}
	}
	return fmt.Errorf("a first that was seen at %s is not in clean", seen)
}

// judgedAnew reports whether the first that a repeat names has become a repeat
// itself, rightly (docs/operations.md, "PostgreSQL is down"):
//
//	the first is registered, and its batch is thrown back before its commit
//	a copy is SEEN of it
//	its window ends; another copy is NEW and opens the next
//	the first comes again, and is SEEN of that
func judgedAnew(repeat, first *Output) bool {
	if first == nil || first.Kind != Duplicates {
		return false
	}
	_, end, err := windowOf(repeat)
	next, _, err2 := windowOf(first)
	return errors.Join(err, err2) == nil && !next.Before(end)
}

func repeatOf(o *Observation, out *Output, s *Sent, byOrigin map[Place]*Output) error {
	at, err := ParsePlace(Header(out.Record, "dedup-first-origin"))
	if err != nil {
		return err
	}
	first, by := o.Sent[at], s.keys()[0]
	if matched := Header(out.Record, "dedup-matched"); matched != "" {
		by.key = matched
	}
	switch {
	case first != nil && o.Gone[at]: // an orphan: decided, then gone
	case first == nil || byOrigin[at] == nil || byOrigin[at].Kind != Clean && !judgedAnew(out, byOrigin[at]):
		return fmt.Errorf("first %s is not in clean", at)
	case at == out.Origin:
		return errors.New("is called a repeat of itself")
	case !slices.Contains(s.keys(), by) || !slices.Contains(first.keys(), by):
		return fmt.Errorf("first %s has another scope or key than %s %s", at, by.scope, by.key)
	case bytes.Equal(first.Value, s.Value) != (out.Status() == "SEEN"):
		return fmt.Errorf("status %s, but bytes equal to the first's: %v", out.Status(), bytes.Equal(first.Value, s.Value))
	}
	if got, want := Header(out.Record, "dedup-first-id"), o.IDOf(at); got != want {
		return fmt.Errorf("first id %q, wanted %q", got, want)
	}
	return nil
}

// IDOf is the dedup-id of an accepted raw record: UUIDv5 (RFC 9562 §5.5) of
// "partition/epoch/offset" in the namespace of the topic's id.
func (o *Observation) IDOf(p Place) string {
	return uuid.NewSHA1(o.TopicIDs[p.Topic], fmt.Appendf(nil, "%d/%d/%d", p.Partition, o.Epochs[p], p.Offset)).String()
}
