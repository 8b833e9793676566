package rules

import (
	"strings"
	"time"

	"dedupledger/topics/msgkey"
)

// Flow is what the rules say of one tenant:flow before the key is known.
type Flow struct {
	// Extractors is the chain, first key wins. It must not be changed.
	Extractors []string

	set   *Set
	chain msgkey.Chain // of Extractors
	scope string
	keyed bitset // rules with key that match the scope

	// The first rule without key that sets each, and the ledger scope it gives.
	window, namespace, withDate int
	space                       string
}

// Decision is what the rules say once the key is known.
type Decision struct {
	Window    time.Duration // whole seconds, MinWindow to MaxWindow
	Namespace string        // "" where the flow has keys of its own
	WithDate  bool          // the interchange date is part of the key
	// LedgerScope is the key space: tenant:namespace, or the scope itself.
	LedgerScope string
	// WindowRule is the rule that set the window, for explanations and labels.
	WindowRule *Rule
}

// Decide finds, for each setting, the first rule that applies to key and sets
// it. key is the canonical key before with_date is appended.
func (f *Flow) Decide(key string) Decision {
	window, namespace, withDate := f.window, f.namespace, f.withDate
	s := f.set
	for at := s.keys.find(key); at >= 0; at = s.keys.entries[at].parent {
		s.keys.entries[at].each(f.keyed, func(rule int) bool {
			if rule > window && rule > namespace && rule > withDate {
				return false // all are set by earlier rules
			}
			if r := &s.rules[rule]; r.key.match(key) {
				first(&window, rule, r.Window.Set)
				first(&namespace, rule, r.Namespace.Set)
				first(&withDate, rule, r.WithDate.Set)
			}
			return true
		})
	}
	d := Decision{
		Window:      s.rules[window].Window.Value,
		Namespace:   s.rules[namespace].Namespace.Value,
		WithDate:    s.rules[withDate].WithDate.Value,
		LedgerScope: f.space,
		WindowRule:  &s.rules[window].Rule,
	}
	if namespace != f.namespace {
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
