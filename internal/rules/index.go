package rules

import (
	"math/bits"
	"slices"
	"strings"
)

// bitset holds rule numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// manyRules is how many rules of one prefix make a bitset worth its memory.
const manyRules = 32

// prefixIndex finds the rules whose key glob begins with a text that the key
// begins with, without looking at the others: a hub has a rule for each of
// hundreds of partners.
//
// Prefixes are sorted. The last one that is ≤ the key either begins the key or
// has as a prefix every other one that does (what lies between p and p+x
// begins with p). So one binary search and the walk over parents, each the
// longest other prefix of its child, meets them all.
type prefixIndex struct {
	prefixes []string
	entries  []prefixEntry
}

type prefixEntry struct {
	parent int    // or -1
	few    []int  // rule numbers, ascending
	many   bitset // the same, where there are more than manyRules
}

// newKeyIndex puts each alternative where it is found soonest: by its prefix, or
// where many have the same by what stands in its middle.
func newKeyIndex(keys []glob) (prefixIndex, *gramIndex) {
	alike := map[string]int{}
	for _, g := range keys {
		for _, a := range g {
			alike[a.prefix]++
		}
	}
	var literals []string
	var rules []int
	byPrefix := make([]glob, len(keys))
	for i, g := range keys {
		for _, a := range g {
			if alike[a.prefix] > manyRules && len(a.literal) >= gramLength {
				literals, rules = append(literals, a.literal), append(rules, i)
			} else {
				byPrefix[i] = append(byPrefix[i], a)
			}
		}
	}
	return newPrefixIndex(byPrefix), newGramIndex(literals, rules)
}

func newPrefixIndex(keys []glob) prefixIndex {
	rules := map[string][]int{}
	for i, g := range keys {
		for _, a := range g {
			if at := rules[a.prefix]; len(at) == 0 || at[len(at)-1] != i {
				rules[a.prefix] = append(at, i)
			}
		}
	}
	x := prefixIndex{}
	for p := range rules {
		x.prefixes = append(x.prefixes, p)
	}
	slices.Sort(x.prefixes)
	for i, p := range x.prefixes {
		e := prefixEntry{parent: x.beginning(p, i-1), few: rules[p]}
		if len(e.few) > manyRules {
			e.many = newBitset(len(keys))
			for _, rule := range e.few {
				e.many.add(rule)
			}
		}
		x.entries = append(x.entries, e)
	}
	return x
}

// find is the entry of the longest prefix that key begins with, or -1.
func (x *prefixIndex) find(key string) int {
	at, exact := slices.BinarySearch(x.prefixes, key)
	if exact {
		return at
	}
	return x.beginning(key, at-1)
}

// beginning walks from entry at over its parents to one that key begins with.
func (x *prefixIndex) beginning(key string, at int) int {
	for at >= 0 && !strings.HasPrefix(key, x.prefixes[at]) {
		at = x.entries[at].parent
	}
	return at
}

// each calls visit with the rules of entry e that are also in among, in
// ascending order, until it answers false.
func (e *prefixEntry) each(among bitset, visit func(rule int) bool) {
	if e.many == nil {
		for _, rule := range e.few {
			if among.has(rule) && !visit(rule) {
				return
			}
		}
		return
	}
	for w, word := range e.many {
		for word &= among[w]; word != 0; word &= word - 1 {
			if !visit(w*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}
