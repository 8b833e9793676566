package rules

import (
	"fmt"
	"strings"
)

// maxAlternatives bounds what {a,b}{c,d}… expands to.
const maxAlternatives = 64

// What globs may spell beside * ? { } and the comma in braces: the octets of
// ARCHITECTURE §3 (scope) and docs/message-keys.md (key). A pattern with any other
// could never match and is a typing error.
const (
	alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	scopeOctets  = alphanumeric + "._-:"
	keyOctets    = alphanumeric + "-._@+=,%:/~"
)

// glob is a compiled pattern: it matches where one of its alternatives does.
type glob []alternative

// alternative is a pattern without braces, cut before its first * or ?. literal
// is the longest plain text in rest: a quick no for the many partners that are
// told apart in the middle of a key (*/RECEIVER:14/*).
type alternative struct{ prefix, rest, literal string }

func newAlternative(text string) alternative {
	wild := strings.IndexAny(text, "*?")
	if wild < 0 {
		return alternative{prefix: text}
	}
	a := alternative{prefix: text[:wild], rest: text[wild:]}
	for plain := range strings.FieldsFuncSeq(a.rest, func(r rune) bool { return r == '*' || r == '?' }) {
		if len(plain) > len(a.literal) {
			a.literal = plain
		}
	}
	return a
}

func compileGlob(pattern, octets string) (glob, error) {
	if pattern == "" {
		return nil, fmt.Errorf("empty glob")
	}
	for _, r := range pattern {
		if !strings.ContainsRune(octets, r) && !strings.ContainsRune("*?{,}", r) {
			return nil, fmt.Errorf("%q can never match; allowed are letters, digits, %s and the globs * ? {a,b}",
				r, strings.TrimPrefix(octets, alphanumeric))
		}
	}
	texts, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	g := make(glob, len(texts))
	for i, text := range texts {
		g[i] = newAlternative(text)
	}
	return g, nil
}

// expand writes out the braces of a pattern, which do not nest.
func expand(pattern string) ([]string, error) {
	done := []string{""}
	for rest := pattern; rest != ""; {
		plain, choices, after, err := cutBraces(rest)
		if err != nil {
			return nil, err
		}
		rest = after
		if len(done)*len(choices) > maxAlternatives {
			return nil, fmt.Errorf("more than %d alternatives; write several rules", maxAlternatives)
		}
		next := make([]string, 0, len(done)*len(choices))
		for _, d := range done {
			for _, c := range choices {
				next = append(next, d+plain+c)
			}
		}
		done = next
	}
	return done, nil
}

// cutBraces takes the text before the first brace, what the brace offers (one
// empty choice where there is none) and what follows.
func cutBraces(s string) (plain string, choices []string, after string, err error) {
	at := strings.IndexAny(s, "{}")
	if at < 0 {
		return s, []string{""}, "", nil
	}
	inside, after, closed := strings.Cut(s[at+1:], "}")
	if s[at] == '}' || !closed || strings.Contains(inside, "{") {
		return "", nil, "", fmt.Errorf("braces do not pair, or nest; write {a,b}")
	}
	return s[:at], strings.Split(inside, ","), after, nil
}

func (g glob) match(s string) bool {
	for _, a := range g {
		if !strings.HasPrefix(s, a.prefix) {
			continue
		}
		tail := s[len(a.prefix):]
		if strings.Contains(tail, a.literal) && wildcard(a.rest, tail) {
			return true
		}
	}
	return false
}

// wildcard matches * and ? in at most len(pattern) × len(s) steps: only the
// last * is ever taken back, since an earlier one that matched its shortest
// text leaves the most for what follows.
func wildcard(pattern, s string) bool {
	if pattern == "*" {
		return true
	}
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
