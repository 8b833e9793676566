package topics

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"dedupledger/topics/acl"
)

// Names are the topic settings as the configuration has them (docs/configuration.md,
// block topics).
type Names struct {
	Raw        string // pattern, anchored on both sides: '^raw-ingest\.(.+)$'
	Operator   string // internal raw topic: dedup-operator
	Clean      string // template over the pattern's groups: clean.$1
	Duplicates string // template over the groups, {tenant} and {flow}
	DeadLetter string // likewise
	// TenantFromTopic is a pattern, anchored at its start, whose one group is the
	// tenant that a raw topic's records must have; "" for any.
	TenantFromTopic string
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
	names      Names
	raw        *pattern
	duplicates template
	deadLetter template
	tenant     *regexp.Regexp // nil: any
}

// New compiles the names once and refuses what could make the filter read its
// own outputs: no name that a template can produce, nor the operator topic,
// matches the raw pattern; and no two of them can be one topic. Whatever tenant
// and flow a record has, the name is one that Kafka takes, and no other tenant's
// where {tenant} is in it. The error joins a NameError for each fault.
func New(n Names) (*Router, error) {
	var errs []error
	if !validName(n.Operator) {
		errs = append(errs, &NameError{"topics.operator", n.Operator, allowedName})
	}
	duplicates, err := parseTemplate("topics.duplicates", n.Duplicates)
	errs = appendError(errs, err)
	deadLetter, err := parseTemplate("topics.dead_letter", n.DeadLetter)
	errs = appendError(errs, err)
	tenant, err := parseTenant(n.TenantFromTopic)
	errs = appendError(errs, err)
	pattern, err := parsePattern(n.Raw)
	if errs = appendError(errs, err); pattern == nil {
		return nil, errors.Join(errs...)
	}
	if pattern.re.MatchString(n.Operator) {
		errs = append(errs, &NameError{"topics.raw", n.Raw, fmt.Sprintf("must not match topics.operator %q", n.Operator)})
	}
	names := []*named{{field: "topics.operator", text: n.Operator, prog: literal(n.Operator)}}
	for _, t := range []*template{&duplicates, &deadLetter} {
		if made, err := pattern.named(t); err != nil {
			errs = append(errs, &NameError{t.field, t.text, err.Error()})
		} else if made != nil {
			names = append(names, made)
		}
	}
	errs = append(errs, checkNames(pattern, n, names)...)
	errs = append(errs, n.checkClean(pattern, names)...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Router{names: n, raw: pattern, duplicates: duplicates, deadLetter: deadLetter, tenant: tenant}, nil
}

func appendError(errs []error, err error) []error {
	if err != nil {
		errs = append(errs, err)
	}
	return errs
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

// Operator is the internal raw topic. Nothing reads or creates it yet.
func (r *Router) Operator() string { return r.names.Operator }

// IsRaw reports whether the topic is to be filtered.
func (r *Router) IsRaw(topic string) bool { return r.raw.re.MatchString(topic) }

// PerTenant and PerFlow report whether an output's name depends on the record's
// tenant and flow: then not all outputs of a raw topic are known beforehand.
func (r *Router) PerTenant() bool {
	return r.duplicates.uses(pieceTenant) || r.deadLetter.uses(pieceTenant)
}

// PerFlow is PerTenant of the flow.
func (r *Router) PerFlow() bool {
	return r.duplicates.uses(pieceFlow) || r.deadLetter.uses(pieceFlow)
}

// Clean is the clean topic of a raw one; errors wrap ErrRoute.
func (r *Router) Clean(raw string) (string, error) {
	route, err := r.Route(raw)
	if err != nil {
		return "", err
	}
	return route.Clean, nil
}

// Outputs are the topics that a raw topic needs before its first record: see
// Route.Known.
func (r *Router) Outputs(raw string) ([]string, error) {
	route, err := r.Route(raw)
	if err != nil {
		return nil, err
	}
	return route.Known(), nil
}

// named is an output's setting with the program of every name it can make.
type named struct {
	field, text string
	prog        *syntax.Prog
	varies      bool // more than one name
}

const allowedName = "must be a topic name: 1 to 249 characters of a-z A-Z 0-9 . _ -"

// named makes a template's program; nil for one that could not be read.
func (p *pattern) named(t *template) (*named, error) {
	if len(t.pieces) == 0 {
		return nil, nil //nolint:nilnil // reported already
	}
	varies := t.perScope() || t.uses(pieceGroup)
	if !varies && !validName(t.text) {
		return nil, errors.New(allowedName)
	}
	expression, err := t.expression(p.groupExpression)
	if err != nil {
		return nil, err
	}
	prog, err := program(expression)
	if err != nil {
		return nil, err
	}
	for _, no := range []string{".", ".."} {
		if _, both := common(prog, literal(no)); both {
			return nil, fmt.Errorf("could make %q, which is no topic name; put text before the variables, as in duplicates.{tenant}", no)
		}
	}
	return &named{t.field, t.text, prog, varies}, nil
}

func (p *pattern) groupExpression(name string) (string, error) {
	sub, err := p.group(name)
	if err != nil {
		return "", err
	}
	return sub.String(), nil
}

// checkNames holds duplicates and dead-letter against the raw pattern, against
// the operator topic and against each other.
func checkNames(p *pattern, n Names, names []*named) (errs []error) {
	for i, f := range names {
		name, both := common(f.prog, p.prog)
		switch {
		case f.field == "topics.operator":
		case both && f.varies:
			errs = append(errs, &NameError{f.field, f.text, fmt.Sprintf(
				"must not make a name that topics.raw %q matches, as it could with %q: the filter would read its own output", n.Raw, name)})
		case both:
			errs = append(errs, &NameError{"topics.raw", n.Raw, fmt.Sprintf("must not match %s %q", f.field, f.text)})
		}
		for _, g := range names[:i] {
			name, both := common(f.prog, g.prog)
			switch {
			case both && (f.varies || g.varies):
				errs = append(errs, &NameError{f.field, f.text, fmt.Sprintf("must not make a name that %s %q can make too, as it could with %q", g.field, g.text, name)})
			case both:
				errs = append(errs, &NameError{f.field, f.text, "must differ from " + g.field})
			}
		}
	}
	return errs
}

func (n Names) checkClean(p *pattern, names []*named) []error {
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
	for _, f := range names {
		if name, both := common(results, f.prog); both {
			errs = append(errs, &NameError{"topics.clean", n.Clean, fmt.Sprintf("must not be able to make %q of %s %q", name, f.field, f.text)})
		}
	}
	return errs
}
