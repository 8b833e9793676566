package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// books hold what was sent and what came of it.
type books struct {
	sent     map[topics.Place]message
	outs     map[topics.Place]*outcome
	accepted map[scopedKey][]*outcome // clean, in order of their coming
	accounts map[account]tally
	open     map[topics.Place]bool // sent, without an output
	lasts    map[string]map[int32]int64
}

type scopedKey struct{ scope, key string }

// outcome is a committed output.
type outcome struct {
	topics.Output
	of    topics.Place
	value string // of the raw record
}

type account struct {
	scope  string
	status ledger.Verdict
}

type tally struct{ count, bytes int64 }

func newBooks() books {
	return books{
		sent: map[topics.Place]message{}, outs: map[topics.Place]*outcome{}, accepted: map[scopedKey][]*outcome{},
		accounts: map[account]tally{}, open: map[topics.Place]bool{}, lasts: map[string]map[int32]int64{},
	}
}

func (b *books) book(at topics.Place, m message) {
	b.sent[at], b.open[at] = m, true
	if b.lasts[at.Topic] == nil {
		b.lasts[at.Topic] = map[int32]int64{}
	}
	b.lasts[at.Topic][at.Partition] = at.Offset
}

func (b *books) missing() int { return len(b.open) }

func (b *books) lost() string {
	var names []string
	for p := range b.open {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return fmt.Sprintf("%d records without an output: %s", len(names), strings.Join(names[:min(len(names), 5)], ", "))
}

// take books a committed output and judges it: laws 1 and 2, and the verdict.
func (b *books) take(r *kgo.Record) error {
	o, err := topics.ReadOutput(r)
	if err != nil {
		return fmt.Errorf("wrong: output %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	m, known := b.sent[o.Origin]
	if !known {
		return fmt.Errorf("wrong: %s/%d/%d comes from %s, which nobody sent", r.Topic, r.Partition, r.Offset, o.Origin)
	}
	if first := b.outs[o.Origin]; first != nil {
		return fmt.Errorf("doubled: law 1: %s has the outputs %s and %s, in %s", o.Origin, first.Verdict, o.Verdict, r.Topic)
	}
	out := &outcome{Output: o, of: o.Origin, value: m.value}
	b.outs[o.Origin] = out
	delete(b.open, o.Origin)
	scope := ledger.UnreadableScope
	if m.code != badScope {
		scope = m.scope
	}
	a := account{scope, o.Verdict}
	b.accounts[a] = tally{b.accounts[a].count + 1, b.accounts[a].bytes + int64(len(m.value))}
	return b.judge(r, out, &m)
}

// judge holds an output against what its sender knows. The first of a key comes
// to clean no later than its repeats come to duplicates, but the reader may get
// them in another order: repeats are judged at the end.
func (b *books) judge(r *kgo.Record, o *outcome, m *message) error {
	at := fmt.Sprintf("%s in %s", o.of, r.Topic)
	clean := "clean." + strings.TrimPrefix(o.of.Topic, "raw-ingest.")
	switch o.Verdict {
	case ledger.Invalid:
		if o.Reason != m.code || r.Topic != m.unless(clean, "dead-letter") {
			return fmt.Errorf("wrong: %s: INVALID %q, wanted %q", at, o.Reason, m.code)
		}
	case ledger.New:
		if m.code != "" || r.Topic != clean || r.Partition != o.of.Partition || string(r.Value) != m.value {
			return fmt.Errorf("wrong: %s: NEW, wanted code %q", at, m.code)
		}
		return b.accept(o, m)
	default:
		if m.code != "" || r.Topic != m.unless(clean, "duplicates") || string(r.Value) != m.value {
			return fmt.Errorf("wrong: %s: %s, wanted code %q", at, o.Verdict, m.code)
		}
	}
	return nil
}

// unless is the topic of an output that is not NEW: clean, where the flow is only
// observed and clean can take the record.
func (m *message) unless(clean, topic string) string {
	if strings.HasSuffix(m.scope, ":"+watched) && m.code != refused && m.code != topics.CodeRecordTooLarge {
		return clean
	}
	return topic
}

// accept is law 2, for each of its keys.
func (b *books) accept(o *outcome, m *message) error {
	if got, want := o.ExpiresAt.Sub(o.FirstSeenAt), windowOf(m.key); got != want {
		return fmt.Errorf("wrong: %s: window %s, wanted %s", o.of, got, want)
	}
	if want := m.keys()[1:]; !slices.Equal(o.Aliases, prefixed(want)) {
		return fmt.Errorf("wrong: %s: aliases %q, wanted %q", o.of, o.Aliases, want)
	}
	for _, key := range m.keys() {
		k := scopedKey{m.scope, key}
		for _, other := range b.accepted[k] {
			if o.FirstSeenAt.Before(other.ExpiresAt) && other.FirstSeenAt.Before(o.ExpiresAt) {
				return fmt.Errorf("doubled: law 2: %s and %s are both in clean for %s %s, first seen %s and %s", other.of, o.of, k.scope, k.key,
					other.FirstSeenAt.Format(time.TimeOnly), o.FirstSeenAt.Format(time.TimeOnly))
			}
		}
		b.accepted[k] = append(b.accepted[k], o)
	}
	return nil
}

func prefixed(keys []string) (all []string) {
	for _, key := range keys {
		all = append(all, keyPrefix+key)
	}
	return all
}

// repeats judges those in duplicates: each is a copy of one that is in clean, and
// SEEN where the bytes are the same; of the key by which it is a copy one at least
// is in clean.
func (b *books) repeats() (faults []error) {
	for at, o := range b.outs {
		m := b.sent[at]
		if m.code != "" {
			continue
		}
		by := m.key
		if o.Matched != "" {
			by = strings.TrimPrefix(o.Matched, keyPrefix)
		}
		if !slices.Contains(m.keys(), by) || o.Matched != "" && o.Verdict == ledger.New {
			faults = append(faults, fmt.Errorf("wrong: %s is %s by %q", at, o.Verdict, o.Matched))
			continue
		}
		accepted := b.accepted[scopedKey{m.scope, by}]
		if len(accepted) == 0 {
			faults = append(faults, fmt.Errorf("lost: law 3: no copy of %s %s is in clean, e.g. %s", m.scope, by, at))
			continue
		}
		if o.Verdict == ledger.New {
			continue
		}
		i := slices.IndexFunc(accepted, func(c *outcome) bool { return c.FirstSeenAt.Equal(o.FirstSeenAt) })
		if i < 0 {
			faults = append(faults, fmt.Errorf("wrong: %s is %s of a row of %s, which is not in clean", at, o.Verdict, o.FirstSeenAt))
		} else if (accepted[i].value == m.value) != (o.Verdict == ledger.Seen) {
			faults = append(faults, fmt.Errorf("wrong: %s is %s of %s", at, o.Verdict, accepted[i].of))
		}
	}
	return faults
}

// of adds up the outputs of a verdict in the accounts of scopes.
func (b *books) of(scopes ...string) map[account]tally {
	all := maps.Clone(b.accounts)
	maps.DeleteFunc(all, func(a account, _ tally) bool { return !slices.Contains(scopes, a.scope) })
	return all
}

// sums tell, of outputs with a readable scope, who is in clean by dedup-id, and
// how many were refused, could have been repeats then, were repeats and were changed
// repeats. Clean takes the repeats of a flow that is only observed, and can refuse them.
func (b *books) sums() (inClean map[uuid.UUID]bool, wasRefused, perhapsRepeats, repeats, changed int64) {
	inClean = map[uuid.UUID]bool{}
	for at, o := range b.outs {
		switch o.Verdict {
		case ledger.New:
			inClean[o.ID] = true
		case ledger.Drift:
			changed++
			repeats++
		case ledger.Seen:
			repeats++
		case ledger.Invalid:
			if o.Reason == refused {
				wasRefused++
				if strings.HasSuffix(b.sent[at].scope, ":"+watched) {
					perhapsRepeats++
				}
			}
		}
	}
	return inClean, wasRefused, perhapsRepeats, repeats, changed
}
