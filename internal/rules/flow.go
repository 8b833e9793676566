package rules

import (
	"strings"
	"time"

	"dedupledger/topics/msgkey"
)

// Flow is what the rules say of one tenant:flow before the key is known.
type Flow struct {
	// Extractors is the chain, first key wins. Aliases are extractors of further
	// keys, each by itself. They must not be changed.
	Extractors, Aliases []string

	set     *Set
	chain   msgkey.Chain   // of Extractors
	aliases []msgkey.Chain // of one extractor each
	with    msgkey.Options // of the chains
	hash    msgkey.Mode    // by which payloads are compared where their octets differ
	scope   string
	keyed   bitset // rules with key that match the scope

	// The first rule without key that sets each, and the ledger scope it gives.
	chosen chosen
	space  string
}

// chosen are numbers of rules: of each setting that is decided once the key is
// known, the one that decides it.
type chosen struct{ window, namespace, withDate, mode, payload int }

func nothing() chosen { return chosen{unset, unset, unset, unset, unset} }

// take lets rule number i decide what it sets and no earlier one does.
func (c *chosen) take(i int, r *Rule) {
	first(&c.window, i, r.Window.Set)
	first(&c.namespace, i, r.Namespace.Set)
	first(&c.withDate, i, r.WithDate.Set)
	first(&c.mode, i, r.Mode.Set)
	first(&c.payload, i, r.Payload.Set)
}

// before reports whether every setting is decided by a rule before i.
func (c *chosen) before(i int) bool {
	return max(c.window, c.namespace, c.withDate, c.mode, c.payload) < i
}

// Decision is what the rules say once the key is known.
type Decision struct {
	Window    time.Duration // whole seconds, MinWindow to MaxWindow
	Namespace string        // "" where the flow has keys of its own
	WithDate  bool          // the interchange date is part of the key
	Observe   bool          // nothing is dropped: repeats go to clean, marked
	NoPayload bool          // repeats go to duplicates without their value
	// LedgerScope is the key space: tenant:namespace, or the scope itself.
	LedgerScope string
	// WindowRule is the rule that set the window, for explanations and labels.
	WindowRule *Rule
}

// Observes reports whether the rules without key say mode: observe. They decide
// where no key is known.
func (f *Flow) Observes() bool { return f.set.rules[f.chosen.mode].Mode.Value == ModeObserve }

// Decide finds, for each setting, the first rule that applies to key and sets
// it. key is the canonical key before with_date is appended.
func (f *Flow) Decide(key string) Decision {
	c := f.chosen
	s := f.set
	for at := s.keys.find(key); at >= 0; at = s.keys.entries[at].parent {
		s.keys.entries[at].each(f.keyed, func(rule int) bool {
			if c.before(rule) {
				return false
			}
			if r := &s.rules[rule]; r.key.match(key) {
				c.take(rule, &r.Rule)
			}
			return true
		})
	}
	s.grams.each(key, f.keyed, func(rule int) {
		if r := &s.rules[rule]; !c.before(rule) && r.key.match(key) {
			c.take(rule, &r.Rule)
		}
	})
	d := Decision{
		Window:      s.rules[c.window].Window.Value,
		Namespace:   s.rules[c.namespace].Namespace.Value,
		WithDate:    s.rules[c.withDate].WithDate.Value,
		Observe:     s.rules[c.mode].Mode.Value == ModeObserve,
		NoPayload:   s.rules[c.payload].Payload.Value == PayloadNone,
		LedgerScope: f.space,
		WindowRule:  &s.rules[c.window].Rule,
	}
	if c.namespace != f.chosen.namespace {
		d.LedgerScope = LedgerScope(f.scope, d.Namespace)
	}
	return d
}

// LedgerScope is where a key of scope (tenant:flow) is unique: tenant:namespace,
// or without a namespace the scope itself (ARCHITECTURE §3).
func LedgerScope(scope, namespace string) string {
	if namespace == "" {
		return scope
	}
	tenant, _, _ := strings.Cut(scope, ":")
	return tenant + ":" + namespace
}
