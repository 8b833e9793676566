package topics

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"dedupledger/topics/acl"
)

// Names are the topic settings as the configuration has them (docs/configuration.md,
// block topics).
type Names struct {
	Raw        string // pattern, anchored on both sides: '^raw-ingest\.(.+)$'
	Operator   string // internal raw topic: dedup-operator
	Clean      string // template over the pattern's groups: clean.$1
	Duplicates string
	DeadLetter string
}

// NameError is one setting that cannot be: Field as the configuration spells
// it, and what is allowed instead.
type NameError struct {
	Field, Value, Allowed string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%s: %q: %s", e.Field, e.Value, e.Allowed)
}

// ErrRoute says that a raw topic has no clean topic: its name does not match
// the pattern, or the name made from it cannot be used.
var ErrRoute = errors.New("no route")

// Router knows the names. It holds no state and is safe for concurrent use.
type Router struct {
	names Names
	raw   *regexp.Regexp
}

// New compiles the names once and refuses what could make the filter read its
// own outputs: no name that a clean template can produce, nor duplicates,
// dead-letter or the operator topic, matches the raw pattern; and no two of
// them can be one topic. The error joins a NameError for each fault.
func New(n Names) (*Router, error) {
	var errs []error
	for _, f := range n.fixed() {
		errs = append(errs, checkFixed(f)...)
	}
	errs = append(errs, n.checkDistinct()...)
	pattern, err := parsePattern(n.Raw)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	for _, f := range n.fixed() {
		if pattern.re.MatchString(f.value) {
			errs = append(errs, &NameError{"topics.raw", n.Raw, fmt.Sprintf("must not match %s %q", f.field, f.value)})
		}
	}
	errs = append(errs, n.checkClean(pattern)...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Router{names: n, raw: pattern.re}, nil
}

// Pattern is the raw pattern, for the consumer's subscription.
func (r *Router) Pattern() string { return r.names.Raw }

// RawNames is what the names of all raw topics begin with, or every topic where
// the pattern fixes no beginning.
func (r *Router) RawNames() acl.Name {
	re, err := regexp.Compile(strings.TrimPrefix(r.names.Raw, "^"))
	if err != nil {
		return acl.Named("*")
	}
	if prefix, _ := re.LiteralPrefix(); prefix != "" {
		return acl.Prefix(prefix)
	}
	return acl.Named("*")
}

// Duplicates is where SEEN and DRIFT records go.
func (r *Router) Duplicates() string { return r.names.Duplicates }

// DeadLetter is where INVALID records go.
func (r *Router) DeadLetter() string { return r.names.DeadLetter }

// Operator is the internal raw topic. Nothing reads or creates it yet.
func (r *Router) Operator() string { return r.names.Operator }

// IsRaw reports whether the topic is to be filtered.
func (r *Router) IsRaw(topic string) bool { return r.raw.MatchString(topic) }

// Clean is the clean topic of a raw one. It runs a regular expression: ask once
// per topic, not per record. New has proved that no result is a raw topic; the
// check here holds whatever that proof has overlooked. Errors wrap ErrRoute.
func (r *Router) Clean(raw string) (string, error) {
	match := r.raw.FindStringSubmatchIndex(raw)
	if match == nil {
		return "", fmt.Errorf("topic %q does not match topics.raw %q: %w", raw, r.names.Raw, ErrRoute)
	}
	clean := string(r.raw.ExpandString(nil, r.names.Clean, raw, match))
	switch {
	case !validName(clean):
		return "", fmt.Errorf("topics.clean %q makes %.300q of topic %q, which is no topic name: %w", r.names.Clean, clean, raw, ErrRoute)
	case r.raw.MatchString(clean):
		return "", fmt.Errorf("topics.clean %q makes %q of topic %q, which would be filtered again: %w", r.names.Clean, clean, raw, ErrRoute)
	}
	for _, f := range r.names.fixed() {
		if clean == f.value {
			return "", fmt.Errorf("topics.clean %q makes %q of topic %q, which is %s: %w", r.names.Clean, clean, raw, f.field, ErrRoute)
		}
	}
	return clean, nil
}

// Outputs are the three topics that records of a raw topic go to.
func (r *Router) Outputs(raw string) ([]string, error) {
	clean, err := r.Clean(raw)
	if err != nil {
		return nil, err
	}
	return []string{clean, r.names.Duplicates, r.names.DeadLetter}, nil
}

type namedTopic struct{ field, value string }

func (n Names) fixed() []namedTopic {
	return []namedTopic{
		{"topics.operator", n.Operator},
		{"topics.duplicates", n.Duplicates},
		{"topics.dead_letter", n.DeadLetter},
	}
}

const allowedName = "must be a topic name: 1 to 249 characters of a-z A-Z 0-9 . _ -"

func checkFixed(f namedTopic) []error {
	switch {
	case strings.ContainsAny(f.value, "{}$"):
		return []error{&NameError{f.field, f.value, "templates ($1, {tenant}, {flow}) are not supported yet; write one topic name"}}
	case !validName(f.value):
		return []error{&NameError{f.field, f.value, allowedName}}
	default:
		return nil
	}
}

func (n Names) checkDistinct() []error {
	var errs []error
	fixed := n.fixed()
	for i, f := range fixed {
		for _, g := range fixed[:i] {
			if f.value == g.value {
				errs = append(errs, &NameError{f.field, f.value, "must differ from " + g.field})
			}
		}
	}
	return errs
}

func (n Names) checkClean(p *pattern) []error {
	if strings.ContainsAny(n.Clean, "{}") && !strings.Contains(n.Clean, "${") {
		return []error{&NameError{"topics.clean", n.Clean, "may use the groups of topics.raw ($1), not {tenant} or {flow}"}}
	}
	results, err := p.expansions(n.Clean)
	if err != nil {
		return []error{&NameError{"topics.clean", n.Clean, err.Error()}}
	}
	var errs []error
	if name, both := common(results, p.prog); both {
		errs = append(errs, &NameError{"topics.clean", n.Clean, fmt.Sprintf(
			"must not make a name that topics.raw %q matches, as it could with %q: the filter would read its own output", n.Raw, name)})
	}
	for _, f := range n.fixed() {
		if _, both := common(results, literal(f.value)); both {
			errs = append(errs, &NameError{"topics.clean", n.Clean, fmt.Sprintf("must not be able to make %s %q", f.field, f.value)})
		}
	}
	return errs
}
