package rules

import (
	"slices"

	"dedupledger/ledger"
	"dedupledger/topics"
	"dedupledger/topics/msgkey"
)

// FlowUnknown is the code of a record that no rule speaks of.
const FlowUnknown = "flow.unknown"

// Keyer finds the keys of records by the rules. It is safe for concurrent use.
type Keyer struct{ set *Set }

// NewKeyer makes a Keyer of a compiled set.
func NewKeyer(s *Set) Keyer { return Keyer{set: s} }

// Key runs the flow's chain and returns the key in its ledger scope with its
// window, or a closed code, and what else the rules say of the record: where no
// key was found, those without key. header gives the value of a
// header by name, counted from the last (msgkey.Message).
func (k Keyer) Key(s topics.Scope, value []byte, header func(name string, back int) ([]byte, bool)) ledger.Keyed {
	var text [longestScope]byte
	scope := append(append(append(text[:0], s.Tenant...), ':'), s.Flow...)
	flow, known := k.set.flowOf(scope)
	if !known {
		return ledger.Keyed{Code: FlowUnknown, HashMode: ledger.HashRaw} // no rule, so none says that it is observed
	}
	m := msgkey.Message{Value: value, Header: header}
	found, code := flow.chain.Extract(&m)
	if code != "" {
		return ledger.Keyed{Code: string(code), HashMode: ledger.HashRaw, Observe: flow.Observes()}
	}
	d := flow.Decide(found.Key)
	keyed := ledger.Keyed{
		Key:      ledger.Key{Scope: d.LedgerScope, Key: found.Key, Window: d.Window},
		HashMode: ledger.HashRaw, Observe: d.Observe, NoPayload: d.NoPayload,
	}
	if d.WithDate {
		keyed.Key.Key = found.KeyWithDate()
	}
	keyed.Aliases = flow.furtherKeys(&m, keyed.Key.Key, d.WithDate)
	// A payload that the mode cannot read has its raw hash alone, and is compared
	// with those alike.
	if sum, ok := flow.hash.Canonical(&m); ok {
		keyed.HashMode, keyed.CanonicalSHA256 = flow.hash.String(), sum
	}
	return keyed
}

// Tried is what the rules of a flow make of one message, for people who ask why.
type Tried struct {
	Keyed ledger.Keyed
	Chain []msgkey.Attempt // every extractor of the chain, those behind the first key too
	// Aliases are those of the extractors of aliases: each that has no Code gave a key,
	// which may be one that was known before it.
	Aliases []msgkey.Attempt
}

// Try is Key with every extractor of the flow.
func (k Keyer) Try(s topics.Scope, value []byte, header func(name string, back int) ([]byte, bool)) Tried {
	t := Tried{Keyed: k.Key(s, value, header)}
	flow, known := k.set.Flow(s.String())
	if !known {
		return t
	}
	m := msgkey.Message{Value: value, Header: header}
	t.Chain = flow.chain.Attempts(&m)
	for i := range flow.aliases {
		t.Aliases = append(t.Aliases, flow.aliases[i].Attempts(&m)...)
	}
	return t
}

// furtherKeys are the keys beside the primary one, each once, in the order of
// aliases. An extractor that finds none adds none, whatever its reason: the record
// has a key. nil, without an allocation, where a flow has no aliases.
func (f *Flow) furtherKeys(m *msgkey.Message, primary string, dated bool) (keys []string) {
	for i := range f.aliases {
		found, code := f.aliases[i].Extract(m)
		if code != "" {
			continue
		}
		key := found.Key
		if dated { // or the number that a partner uses again would be known as an alias
			key = found.KeyWithDate()
		}
		if key != primary && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Observes reports what mode says of records of a scope that have no key, or are
// not looked into: of the rules without key.
func (k Keyer) Observes(s topics.Scope) bool {
	flow, known := k.set.Flow(s.String())
	return known && flow.Observes()
}

// LedgerScope is the key space of a key that is known already: of an output
// that is read back. A flow that no rule speaks of any more keeps its own.
func (k Keyer) LedgerScope(s topics.Scope, key string) string {
	flow, known := k.set.Flow(s.String())
	if !known {
		return s.String()
	}
	return flow.Decide(key).LedgerScope
}
