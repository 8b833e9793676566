package topics

import (
	"fmt"
	"regexp"
	"slices"
)

// Route is where the records of one raw topic go. It is immutable and safe for
// concurrent use.
type Route struct {
	Raw, Clean             string
	Tenant                 string // that every record must have; "" for any
	duplicates, deadLetter template
	writes                 *regexp.Regexp // duplicates and dead-letters of any scope
}

// Route makes the names that belong to a raw topic. It compiles expressions: ask
// once per topic, not per record. New has proved that no name is a raw topic;
// the checks here hold whatever that proof has overlooked, and the length, which
// depends on the raw topic's. Errors wrap ErrRoute.
func (r *Router) Route(raw string) (*Route, error) {
	match := r.raw.re.FindStringSubmatchIndex(raw)
	if match == nil {
		return nil, fmt.Errorf("topic %q does not match topics.raw %q: %w", raw, r.names.Raw, ErrRoute)
	}
	expand := func(text string) string { return string(r.raw.re.ExpandString(nil, text, raw, match)) }
	group := func(name string) string { return expand("${" + name + "}") }
	t := &Route{
		Raw: raw, Clean: expand(r.names.Clean),
		duplicates: r.duplicates.fill(group), deadLetter: r.deadLetter.fill(group),
	}
	if err := r.checkClean(t); err != nil {
		return nil, err
	}
	var err error
	if t.Tenant, err = r.tenantOf(raw); err != nil {
		return nil, err
	}
	var alternatives string
	for _, out := range []*template{&t.duplicates, &t.deadLetter} {
		expression, err := r.checkFilled(t, out)
		if err != nil {
			return nil, err
		}
		if alternatives != "" {
			alternatives += "|"
		}
		alternatives += expression
	}
	if t.writes, err = regexp.Compile(alternatives); err != nil {
		return nil, fmt.Errorf("outputs of topic %q: %w: %w", raw, err, ErrRoute)
	}
	if t.writes.MatchString(t.Clean) {
		return nil, fmt.Errorf("topics.clean %q makes %q of topic %q, which is one of duplicates or dead-letter: %w", r.names.Clean, t.Clean, raw, ErrRoute)
	}
	return t, nil
}

// tenantOf is the tenant that the raw topic's name tells.
func (r *Router) tenantOf(raw string) (string, error) {
	if r.tenant == nil {
		return "", nil
	}
	match := r.tenant.FindStringSubmatch(raw)
	if match == nil {
		return "", fmt.Errorf("topic %q does not match topics.tenant_from_topic %q, so nobody knows its tenant; rename the topic or widen the pattern: %w",
			raw, r.names.TenantFromTopic, ErrRoute)
	}
	if _, err := ParseScope(match[1] + ":x"); err != nil {
		return "", fmt.Errorf("topics.tenant_from_topic %q makes tenant %.80q of topic %q, and no record can have it: %w", r.names.TenantFromTopic, match[1], raw, ErrRoute)
	}
	return match[1], nil
}

func (r *Router) checkClean(t *Route) error {
	switch {
	case !validName(t.Clean):
		return fmt.Errorf("topics.clean %q makes %.300q of topic %q, which is no topic name: %w", r.names.Clean, t.Clean, t.Raw, ErrRoute)
	case r.IsRaw(t.Clean):
		return fmt.Errorf("topics.clean %q makes %q of topic %q, which would be filtered again: %w", r.names.Clean, t.Clean, t.Raw, ErrRoute)
	case t.Clean == r.names.Operator:
		return fmt.Errorf("topics.clean %q makes %q of topic %q, which is topics.operator: %w", r.names.Clean, t.Clean, t.Raw, ErrRoute)
	default:
		return nil
	}
}

// checkFilled checks a template whose groups are filled in, and returns the
// expression of its names.
func (r *Router) checkFilled(t *Route, out *template) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("%s %q %s of topic %q: %w", out.field, out.text, why, t.Raw, ErrRoute)
	}
	if longest := out.longest(); longest > maxTopicName {
		return refuse(fmt.Sprintf("makes names of up to %d characters, more than the %d of a topic name,", longest, maxTopicName))
	}
	if name := out.name(Scope{}); !validName(name) {
		return refuse(fmt.Sprintf("makes %.300q, which is no topic name,", name))
	}
	expression, err := out.expression(nil)
	if err != nil {
		return "", err
	}
	prog, err := program(expression)
	if err != nil {
		return "", err
	}
	if name, both := common(prog, r.raw.prog); both {
		return refuse(fmt.Sprintf("can make %q, which would be filtered again,", name))
	}
	return expression, nil
}

// Duplicates is where a SEEN or DRIFT of the scope goes.
func (t *Route) Duplicates(s Scope) string { return t.duplicates.name(s) }

// DeadLetter is where an INVALID goes; the zero Scope is one that cannot be read.
func (t *Route) DeadLetter(s Scope) string { return t.deadLetter.name(s) }

// Known are the outputs that the raw topic needs before its first record: clean,
// duplicates unless they depend on the record, and the dead-letter topic of what
// has no readable scope. In that order, and no name twice.
func (t *Route) Known() []string {
	known := []string{t.Clean}
	if !t.duplicates.perScope() {
		known = append(known, t.duplicates.name(Scope{}))
	}
	return append(known, t.deadLetter.name(Scope{}))
}

// PerScope reports whether an output depends on the record's scope.
func (t *Route) PerScope() bool { return t.duplicates.perScope() || t.deadLetter.perScope() }

// MayWrite reports whether the topic can be an output of the raw topic, whatever
// records come.
func (t *Route) MayWrite(topic string) bool { return topic == t.Clean || t.writes.MatchString(topic) }

// Of are the outputs that a scope needs beside those of Known.
func (t *Route) Of(s Scope) []string {
	var names []string
	for _, name := range []string{t.Duplicates(s), t.DeadLetter(s)} {
		if !slices.Contains(t.Known(), name) {
			names = append(names, name)
		}
	}
	return names
}
