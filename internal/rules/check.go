package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dedupledger/internal/setting"
	"dedupledger/ledger"
	"dedupledger/topics/msgkey"
)

const comesLater = "comes with a later release; "

// checker collects what is wrong with one rule.
type checker struct {
	rule     *Rule
	problems setting.Problems
}

func (c *checker) report(at setting.Place, name, value, why string) {
	if at == (setting.Place{}) {
		at = c.rule.At
	}
	c.problems = append(c.problems, setting.Problem{At: at, Path: c.rule.Path + "." + name, Value: value, Why: why})
}

// compile checks a rule as a whole and compiles its globs.
func (c *checker) compile() compiled {
	out := compiled{Rule: *c.rule, match: c.matchGlob(), keyed: c.rule.Key.Set}
	if out.keyed {
		out.key = c.glob("key", c.rule.Key, keyOctets)
		c.afterExtraction()
	}
	c.extractors("extractors", c.rule.Extractors)
	c.extractors("aliases", c.rule.Aliases)
	c.namespace()
	c.window()
	c.oneOf("mode", c.rule.Mode, ModeEnforce, ModeObserve)
	c.oneOf("payload", c.rule.Payload, PayloadFull, PayloadNone)
	c.hash()
	c.options()
	c.later()
	return out
}

// matchGlob demands the colon to be spelled: scopes have exactly one, so a
// pattern without it looks right and never matches.
func (c *checker) matchGlob() glob {
	m := c.rule.Match
	if !m.Set {
		c.report(setting.Place{}, "match", "", "not set; write a glob on tenant:flow, as acme:as2 or *:*")
		return nil
	}
	g := c.glob("match", m, scopeOctets)
	for _, a := range g {
		if strings.Count(a.prefix+a.rest, ":") != 1 {
			c.report(m.At, "match", strconv.Quote(m.Value), "needs exactly one colon, tenant:flow, as acme:as2 or *:*")
			return nil
		}
	}
	return g
}

func (c *checker) glob(name string, s Setting[string], octets string) glob {
	g, err := compileGlob(s.Value, octets)
	if err != nil {
		c.report(s.At, name, strconv.Quote(s.Value), err.Error())
	}
	return g
}

// afterExtraction refuses, beside key, what has to be known to get a key.
func (c *checker) afterExtraction() {
	r := c.rule
	for _, s := range []struct {
		name string
		set  bool
		at   setting.Place
	}{
		{"extractors", r.Extractors.Set, r.Extractors.At},
		{"aliases", r.Aliases.Set, r.Aliases.At},
		{"entry", r.Entry.Set, r.Entry.At},
		{"hash", r.Hash.Set, r.Hash.At},
		{"lenient", r.Lenient.Set, r.Lenient.At},
		{"durability", r.Durability.Set, r.Durability.At},
		{"sellers", r.Sellers.Set, r.Sellers.At},
		{"scheme", r.Scheme.Set, r.Scheme.At},
		{"cxml_order", r.CXMLOrder.Set, r.CXMLOrder.At},
		{"message_level", r.MessageLevel.Set, r.MessageLevel.At},
		{"json_pointers", r.JSONPointers.Set, r.JSONPointers.At},
		{"file_pattern", r.FilePattern.Set, r.FilePattern.At},
		{"oftp1", r.OFTP1.Set, r.OFTP1.At},
	} {
		if s.set {
			c.report(s.at, s.name, "", "is decided before the key is known; "+
				"beside key only window, namespace, with_date, mode, payload, ttl_max")
		}
	}
}

// extractors checks the names of a chain, or of aliases. An empty list of aliases is a
// setting too: it exempts from a later rule.
func (c *checker) extractors(list string, e Setting[[]string]) {
	aliases := list == "aliases"
	switch {
	case e.Set && len(e.Value) == 0 && !aliases:
		c.report(e.At, list, "[]", "needs at least one of "+strings.Join(msgkey.Names(), ", "))
	case aliases && len(e.Value) > ledger.MaxAliases:
		c.report(e.At, list, strconv.Quote(strings.Join(e.Value, ",")), fmt.Sprintf("a record has at most %d aliases", ledger.MaxAliases))
	}
	for i, name := range e.Value {
		why := ""
		switch {
		case !slices.Contains(msgkey.Names(), name):
			why = "no such extractor; available are " + strings.Join(msgkey.Names(), ", ")
		case name == msgkey.JSON && len(c.rule.JSONPointers.Value) == 0:
			why = "needs json_pointers in the same rule, as [/order/id]"
		case slices.Contains(e.Value[:i], name):
			why = "named twice"
		}
		if why != "" {
			c.report(e.At, fmt.Sprintf("%s[%d]", list, i), strconv.Quote(name), why)
		}
	}
}

// namespace takes the place of the flow in a ledger scope, so it has a flow's
// spelling. An empty one is a setting too: it exempts from a later rule.
func (c *checker) namespace() {
	n := c.rule.Namespace
	if len(n.Value) > 40 || strings.Trim(n.Value, strings.TrimSuffix(scopeOctets, ":")) != "" {
		c.report(n.At, "namespace", strconv.Quote(n.Value), "write 1 to 40 of letters, digits, . _ -")
	}
}

func (c *checker) window() {
	w := c.rule.Window
	if !w.Set {
		return
	}
	if w.Value < MinWindow || w.Value > MaxWindow || w.Value%time.Second != 0 {
		c.report(w.At, "window", strconv.Quote(setting.FormatDuration(w.Value)), "write whole seconds, 1s to 400d")
	}
}

// oneOf refuses a word that is none of those allowed.
func (c *checker) oneOf(name string, s Setting[string], allowed ...string) {
	if s.Set && !slices.Contains(allowed, s.Value) {
		c.report(s.At, name, strconv.Quote(s.Value), "write "+strings.Join(allowed, " or "))
	}
}

// hash refuses by name the modes that are not there yet.
func (c *checker) hash() {
	h := c.rule.Hash
	if !h.Set {
		return
	}
	if _, err := msgkey.NewMode(h.Value); err != nil {
		why := "no such mode; write "
		if slices.Contains(msgkey.LaterModeNames(), h.Value) {
			why = "not available yet; write "
		}
		c.report(h.At, "hash", strconv.Quote(h.Value), why+strings.Join(msgkey.ModeNames(), ", "))
	}
}

// later refuses every setting without a feature behind it at any value but the
// documented default: taken silently, it would promise what nobody does.
func (c *checker) later() {
	r, d := c.rule, defaults()
	for _, s := range []struct {
		name      string
		got, want Setting[string]
	}{
		{"entry", r.Entry, d.Entry},
		{"durability", r.Durability, d.Durability},
	} {
		if s.got.Set && s.got.Value != s.want.Value {
			c.report(s.got.At, s.name, strconv.Quote(s.got.Value), comesLater+"leave it at "+s.want.Value)
		}
	}
	if r.TTLMax.Set && r.TTLMax.Value != d.TTLMax.Value {
		c.report(r.TTLMax.At, "ttl_max", strconv.Quote(setting.FormatDuration(r.TTLMax.Value)), comesLater+"leave it at 400d")
	}
}
