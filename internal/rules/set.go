package rules

import (
	"fmt"
	"slices"
	"time"

	"dedupledger/internal/setting"
	"dedupledger/topics/msgkey"
)

// maxRules bounds a set: each scope seen remembers one bit per rule.
const maxRules = 4096

// Set is a compiled list of rules. It is safe for concurrent use.
type Set struct {
	rules []compiled // in order; behind the last one the defaults, which match everything
	keys  prefixIndex
	grams *gramIndex
	flows cache
}

type compiled struct {
	Rule
	match, key glob
	keyed      bool // applies only to keys that key matches
}

// New checks and compiles the user's rules and, if builtinRules, those of
// Builtin behind them. The error is setting.Problems, all of them at once.
func New(own []Rule, builtinRules bool) (*Set, error) {
	if len(own) > maxRules {
		return nil, setting.Problems{{
			At: own[maxRules].At, Path: "flows",
			Why: fmt.Sprintf("%d rules; at most %d. Globs {a,b} put several partners into one", len(own), maxRules),
		}}
	}
	all := own
	if builtinRules {
		all = append(slices.Clip(all), Builtin()...)
	}
	s := &Set{}
	var problems setting.Problems
	for i := range all {
		c := checker{rule: &all[i]}
		s.rules = append(s.rules, c.compile())
		problems = append(problems, c.problems...)
	}
	problems = append(problems, emptied(s.rules)...)
	if len(problems) > 0 {
		return nil, problems
	}
	keys := make([]glob, len(s.rules))
	for i := range s.rules {
		keys[i] = s.rules[i].key
	}
	s.keys, s.grams = newKeyIndex(keys)
	s.rules = append(s.rules, compiled{Rule: defaults()})
	return s, nil
}

// Rules are the rules in order of precedence, the built-in ones included.
func (s *Set) Rules() []Rule {
	out := make([]Rule, len(s.rules)-1)
	for i := range out {
		out[i] = s.rules[i].Rule
	}
	return out
}

// Observing are the rules that say mode: observe, in order. What they apply to is
// not enforced: law 2 does not hold there.
func (s *Set) Observing() []Rule {
	var out []Rule
	for i := range s.rules {
		if s.rules[i].Mode.Value == ModeObserve {
			out = append(out, s.rules[i].Rule)
		}
	}
	return out
}

// Windows are the shortest and the longest window that a record can get, with
// the place where each is written.
func (s *Set) Windows() (shortest, longest Setting[time.Duration]) {
	for i := range s.rules {
		r := &s.rules[i]
		if !r.Window.Set {
			continue
		}
		if !shortest.Set || r.Window.Value < shortest.Value {
			shortest = r.Window
		}
		if r.Window.Value > longest.Value {
			longest = r.Window
		}
		if r.Match.Value == "*:*" && !r.keyed {
			break // nothing gets past this rule
		}
	}
	return shortest, longest
}

// Flow is what the rules say of one tenant:flow. It is known if a rule without
// key matches it; a rule with key never says how a key is found, so it makes
// no flow known. An unknown one is INVALID flow.unknown. The answer is kept for
// the scopes met last.
func (s *Set) Flow(scope string) (*Flow, bool) {
	var text [longestScope]byte
	return s.flowOf(append(text[:0], scope...))
}

// longestScope is that of two parts of 40 bytes and a colon.
const longestScope = 81

func (s *Set) flowOf(scope []byte) (*Flow, bool) {
	f := s.flows.get(scope, s.resolve)
	return f, f != nil
}

// resolve reads all rules for a scope; nil means that it is unknown.
func (s *Set) resolve(scope string) *Flow {
	f := &Flow{set: s, scope: scope, keyed: newBitset(len(s.rules)), chosen: nothing()}
	chain, aliases, hash, known, with := unset, unset, unset, false, noOptions()
	for i := range s.rules {
		r := &s.rules[i]
		if i < len(s.rules)-1 && !r.match.match(scope) {
			continue
		}
		if r.keyed {
			f.keyed.add(i)
			continue
		}
		known = known || i < len(s.rules)-1
		first(&chain, i, r.Extractors.Set)
		first(&aliases, i, r.Aliases.Set)
		first(&hash, i, r.Hash.Set)
		with.take(i, &r.Rule)
		f.chosen.take(i, &r.Rule)
	}
	if !known {
		return nil
	}
	f.Extractors, f.Aliases = s.rules[chain].Extractors.Value, s.rules[aliases].Aliases.Value
	f.with = with.of(s.rules)
	f.chain, _ = f.with.NewChain(f.Extractors...) // checked when the rules were compiled
	for _, name := range f.Aliases {
		alone, _ := f.with.NewChain(name) // likewise
		f.aliases = append(f.aliases, alone)
	}
	f.hash, _ = msgkey.NewMode(s.rules[hash].Hash.Value) // likewise
	f.space = LedgerScope(scope, s.rules[f.chosen.namespace].Namespace.Value)
	return f
}

// unset is the number of no rule; it lies behind all of them.
const unset = maxRules * 2

// first keeps the lowest number of a rule that sets something.
func first(chosen *int, rule int, set bool) {
	if set && rule < *chosen {
		*chosen = rule
	}
}
