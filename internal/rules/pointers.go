package rules

import (
	"fmt"
	"slices"
	"strings"

	"dedupledger/internal/setting"
	"dedupledger/topics/msgkey"
)

// emptied refuses json_pointers: [] where it would decide for the extractor json of a
// later rule. An empty list is a setting: it keeps auto from reading JSON. But json
// has no key without pointers, and such a flow would have no chain at all:
//
//	flows:
//	  - {match: "acme:*", json_pointers: []}
//	  - {match: "*:*", extractors: [json], json_pointers: [/order/id]}
//
// Where a rule between the two has the last word in some other way, the list is in
// vain, and refused all the same.
func emptied(rules []compiled) (problems setting.Problems) {
	for i := range rules {
		r := &rules[i]
		if p := r.JSONPointers; !p.Set || len(p.Value) > 0 || r.keyed || r.decided(rules[:i], pointersOf) {
			continue
		}
		for _, list := range []struct {
			name string
			of   func(*Rule) Setting[[]string]
		}{{"extractors", extractorsOf}, {"aliases", aliasesOf}} {
			later := r.takesFrom(rules, i, list.of)
			if later == nil {
				continue
			}
			problems = append(problems, setting.Problem{
				At: r.JSONPointers.At, Path: r.Path + ".json_pointers", Value: "[]",
				Why: fmt.Sprintf("leaves json in %s of %s (%s) without pointers; write at least one, as [/order/id], or give this rule %s without json",
					list.name, later.Path, list.of(later).At, list.name),
			})
			break
		}
	}
	return problems
}

func pointersOf(r *Rule) Setting[[]string]   { return r.JSONPointers }
func extractorsOf(r *Rule) Setting[[]string] { return r.Extractors }
func aliasesOf(r *Rule) Setting[[]string]    { return r.Aliases }

// takesFrom is the first rule behind number i, which is r, that names json in a list
// and applies to a scope of r, or nil.
func (r *compiled) takesFrom(rules []compiled, i int, list func(*Rule) Setting[[]string]) *Rule {
	if r.decided(rules[:i+1], list) {
		return nil
	}
	for j := i + 1; j < len(rules); j++ {
		later := &rules[j]
		if slices.Contains(list(&later.Rule).Value, msgkey.JSON) && !later.keyed && r.match.meets(later.match) {
			return &later.Rule
		}
		if r.decided(rules[j:j+1], list) {
			return nil
		}
	}
	return nil
}

// decided reports that one of these rules sets a list for every scope of r.
func (r *compiled) decided(rules []compiled, list func(*Rule) Setting[[]string]) bool {
	return slices.ContainsFunc(rules, func(o compiled) bool {
		return list(&o.Rule).Set && !o.keyed && (o.Match.Value == r.Match.Value || o.Match.Value == "*:*")
	})
}

// meets reports whether a scope matches both globs. Each alternative has one colon.
func (g glob) meets(o glob) bool {
	for _, a := range g {
		tenant, flow, _ := strings.Cut(a.prefix+a.rest, ":")
		for _, b := range o {
			t, f, _ := strings.Cut(b.prefix+b.rest, ":")
			if meet(tenant, t) && meet(flow, f) {
				return true
			}
		}
	}
	return false
}

// meet reports whether a text matches both patterns of * and ?. behind[j] and now[j]
// say that of the patterns from i+1 and i, and j, on.
func meet(p, q string) bool {
	behind, now := make([]bool, len(q)+1), make([]bool, len(q)+1)
	for i := len(p); i >= 0; i-- {
		behind, now = now, behind
		for j := len(q); j >= 0; j-- {
			left, right := i < len(p), j < len(q)
			switch {
			case left && p[i] == '*':
				now[j] = behind[j] || right && now[j+1]
			case right && q[j] == '*':
				now[j] = now[j+1] || left && behind[j]
			case left && right:
				now[j] = (p[i] == '?' || q[j] == '?' || p[i] == q[j]) && behind[j+1]
			default:
				now[j] = left == right
			}
		}
	}
	return now[0]
}
