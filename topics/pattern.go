package topics

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// pattern is the raw pattern with what is needed to reason about it.
type pattern struct {
	re   *regexp.Regexp
	tree *syntax.Regexp
	prog *syntax.Prog
}

const allowedPattern = `must be anchored on both sides, as in '^raw-ingest\.(.+)$'; put alternatives in brackets: '^(a|b)\.(.+)$'`

// parsePattern wants ^ first and $ last in the whole pattern. `^a|b$` has both
// signs, but matches "axx" and "xxb": the tree tells, not the text. An
// unanchored pattern matches anywhere in a name, so that clean.raw-ingest.x
// would be filtered again.
func parsePattern(text string) (*pattern, error) {
	bad := func(allowed string) (*pattern, error) {
		return nil, &NameError{"topics.raw", text, allowed}
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return bad("must be a regular expression (RE2): " + err.Error())
	}
	if tree.Op != syntax.OpConcat || len(tree.Sub) < 3 ||
		tree.Sub[0].Op != syntax.OpBeginText || tree.Sub[len(tree.Sub)-1].Op != syntax.OpEndText {
		return bad(allowedPattern)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return bad("must be a regular expression (RE2): " + err.Error())
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return bad("must be a regular expression (RE2): " + err.Error())
	}
	return &pattern{re: re, tree: tree, prog: prog}, nil
}

// parseTenant wants ^ first and one group; nil for no pattern.
func parseTenant(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // any tenant
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, &NameError{"topics.tenant_from_topic", text, "must be a regular expression (RE2): " + err.Error()}
	}
	re, err := regexp.Compile(text)
	if err != nil || tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText || re.NumSubexp() != 1 {
		return nil, &NameError{"topics.tenant_from_topic", text, `must begin with ^ and have one group, the tenant, as in '^raw-ingest\.([^.]+)\.'`}
	}
	return re, nil
}

// expansions is a program for every name the template can make: its literal
// text, and in the place of each group the group's own expression. That is more
// than the groups can hold together, never less, which is the safe side.
func (p *pattern) expansions(template string) (*syntax.Prog, error) {
	var b strings.Builder
	for rest := template; rest != ""; {
		text, after, isGroup := strings.Cut(rest, "$")
		if !nameText(text) {
			return nil, errors.New("may hold only a-z A-Z 0-9 . _ - and groups such as $1")
		}
		b.WriteString(regexp.QuoteMeta(text))
		if !isGroup {
			break
		}
		name, tail, err := groupName(after)
		if err != nil {
			return nil, err
		}
		sub, err := p.group(name)
		if err != nil {
			return nil, err
		}
		b.WriteString("(?:" + sub.String() + ")")
		rest = tail
	}
	return program("^(?:" + b.String() + ")$")
}

// groupName takes the name behind a $ as regexp.Expand does: in braces, or as
// many letters, digits and underscores as there are.
func groupName(s string) (name, rest string, err error) {
	if strings.HasPrefix(s, "{") {
		name, rest, ok := strings.Cut(s[1:], "}")
		if !ok || name == "" {
			return "", "", errors.New("has a ${ without a name and }")
		}
		return name, rest, nil
	}
	n := 0
	for n < len(s) && (scopeByte(s[n]) && s[n] != '.' && s[n] != '-') {
		n++
	}
	if n == 0 {
		return "", "", errors.New("has a $ without a group, as in $1")
	}
	return s[:n], s[n:], nil
}

// group finds what a reference stands for. A reference to no group would
// expand to nothing, silently: `clean.$1_x` is the group "1_x".
func (p *pattern) group(name string) (*syntax.Regexp, error) {
	n, err := strconv.Atoi(name)
	if err == nil && n == 0 {
		return nil, errors.New("may not use $0, the whole raw name; use a group, as in $1")
	}
	if sub := findGroup(p.tree, n, name); sub != nil {
		return sub, nil
	}
	return nil, fmt.Errorf("uses group $%s, which topics.raw does not have; write ${1} where letters, digits or _ follow", name)
}

func findGroup(t *syntax.Regexp, number int, name string) *syntax.Regexp {
	if t.Op == syntax.OpCapture && (t.Cap == number && number > 0 || t.Name == name && name != "") {
		return t.Sub[0]
	}
	for _, sub := range t.Sub {
		if found := findGroup(sub, number, name); found != nil {
			return found
		}
	}
	return nil
}

// literal is the program of exactly one name.
func literal(name string) *syntax.Prog {
	tree, err := syntax.Parse("^"+regexp.QuoteMeta(name)+"$", syntax.Perl)
	if err != nil {
		return &syntax.Prog{}
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return &syntax.Prog{}
	}
	return prog
}
