package topics

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Unknown takes the place of {tenant} and {flow} where the scope cannot be read.
const Unknown = "unknown"

// pieceKind is what a part of a template stands for.
type pieceKind uint8

const (
	pieceText   pieceKind = iota + 1 // itself
	pieceGroup                       // a group of topics.raw, by name or number
	pieceTenant                      // the record's tenant
	pieceFlow
)

type piece struct {
	kind pieceKind
	text string
}

// scopePart is what tenants and flows are made of. Names are proved against
// longer ones than there can be, which is the safe side.
const scopePart = "[A-Za-z0-9._-]+"

// template is a topic name with places for what is known of a raw topic ($1)
// and of a record ({tenant}, {flow}).
type template struct {
	field, text string
	pieces      []piece
	// parts is the character that ends or begins {tenant} where the name has
	// other variables, else 0: a tenant that holds it could be given the name of
	// another ("a.b" and flow "c", "a" and flow "b.c").
	parts byte
}

const allowedTemplate = "must be a topic name of a-z A-Z 0-9 . _ -, with $1 for groups of topics.raw, {tenant} and {flow}"

// parseTemplate reads a template without asking what its groups are.
func parseTemplate(field, text string) (t template, err error) {
	t = template{field: field, text: text}
	refuse := func(allowed string) (template, error) { return t, &NameError{field, text, allowed} }
	for rest := text; rest != ""; {
		var p piece
		if p, rest, err = nextPiece(rest); err != nil {
			return refuse(err.Error())
		}
		t.pieces = append(t.pieces, p)
	}
	if len(t.pieces) == 0 {
		return refuse(allowedTemplate)
	}
	if why := t.separate(); why != "" {
		return refuse(why)
	}
	if longest := t.longest(); longest > maxTopicName {
		return refuse(fmt.Sprintf("makes names of up to %d characters; a topic name has at most %d", longest, maxTopicName))
	}
	return t, nil
}

func nextPiece(s string) (p piece, rest string, err error) {
	for name, kind := range map[string]pieceKind{"{tenant}": pieceTenant, "{flow}": pieceFlow} {
		if after, ok := strings.CutPrefix(s, name); ok {
			return piece{kind: kind}, after, nil
		}
	}
	if after, ok := strings.CutPrefix(s, "$"); ok {
		name, rest, err := groupName(after)
		return piece{pieceGroup, name}, rest, err
	}
	n := strings.IndexAny(s, "${")
	if n < 0 {
		n = len(s)
	}
	if n == 0 || !nameText(s[:n]) {
		return p, "", errors.New(allowedTemplate)
	}
	return piece{pieceText, s[:n]}, s[n:], nil
}

// separate finds the character that keeps tenants apart, and says why there is
// none where there must be one.
func (t *template) separate() string {
	at, before, after := -1, false, false
	for i, p := range t.pieces {
		switch {
		case p.kind == pieceText:
		case p.kind == pieceTenant && at >= 0:
			return "has {tenant} twice; write it once"
		case p.kind == pieceTenant:
			at = i
		case at < 0:
			before = true
		default:
			after = true
		}
	}
	switch {
	case at < 0 || !before && !after:
		return ""
	case before && after:
		return "has variables on both sides of {tenant}: two tenants could share a topic. Put {tenant} first or last"
	case before && t.pieces[at-1].kind != pieceText, after && t.pieces[at+1].kind != pieceText:
		return "has a variable beside {tenant}: two tenants could share a topic. Put a character between them, as in {tenant}.{flow}"
	case before:
		text := t.pieces[at-1].text
		t.parts = text[len(text)-1]
	default:
		t.parts = t.pieces[at+1].text[0]
	}
	return ""
}

// longest is the length of the longest name without its groups.
func (t *template) longest() int {
	n := 0
	for _, p := range t.pieces {
		switch p.kind {
		case pieceText:
			n += len(p.text)
		case pieceTenant, pieceFlow:
			n += maxScopePart
		case pieceGroup:
		}
	}
	return n
}

// perScope reports whether the name depends on the record's scope.
func (t *template) perScope() bool { return t.uses(pieceTenant) || t.uses(pieceFlow) }

func (t *template) uses(kind pieceKind) bool {
	for _, p := range t.pieces {
		if p.kind == kind {
			return true
		}
	}
	return false
}

// expression is a regular expression for every name the template can make.
// group tells that of a group: for the whole pattern its own expression, which
// is more than the groups can hold together, never less.
func (t *template) expression(group func(name string) (string, error)) (string, error) {
	var b strings.Builder
	b.WriteString("^(?:")
	for _, p := range t.pieces {
		switch p.kind {
		case pieceText:
			b.WriteString(regexp.QuoteMeta(p.text))
		case pieceGroup:
			sub, err := group(p.text)
			if err != nil {
				return "", err
			}
			b.WriteString("(?:" + sub + ")")
		case pieceTenant, pieceFlow:
			b.WriteString(scopePart)
		}
	}
	b.WriteString(")$")
	return b.String(), nil
}

// fill puts the groups of one raw topic into a template.
func (t *template) fill(group func(name string) string) template {
	filled := *t
	filled.pieces = make([]piece, 0, len(t.pieces))
	for _, p := range t.pieces {
		if p.kind == pieceGroup {
			p = piece{pieceText, group(p.text)}
		}
		filled.pieces = append(filled.pieces, p)
	}
	return filled
}

// name is the topic of a scope, the groups having been filled in. The zero
// scope is one that cannot be read.
func (t *template) name(s Scope) string {
	if s.Tenant == "" || t.parts != 0 && strings.IndexByte(s.Tenant, t.parts) >= 0 {
		s.Tenant = Unknown
	}
	if s.Flow == "" {
		s.Flow = Unknown
	}
	var b strings.Builder
	for _, p := range t.pieces {
		switch p.kind {
		case pieceText, pieceGroup:
			b.WriteString(p.text)
		case pieceTenant:
			b.WriteString(s.Tenant)
		case pieceFlow:
			b.WriteString(s.Flow)
		}
	}
	return b.String()
}

// makes reports whether the name is one of this template's, the groups having
// been filled in.
func (t *template) makes(name string) bool {
	expression, err := t.expression(nil)
	if err != nil {
		return false
	}
	re, err := regexp.Compile(expression)
	return err == nil && re.MatchString(name)
}

// program compiles an expression for the proofs of intersect.go.
func program(expression string) (*syntax.Prog, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("cannot be understood: %w", err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("cannot be understood: %w", err)
	}
	return prog, nil
}
