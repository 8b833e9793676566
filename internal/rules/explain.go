package rules

import (
	"strconv"
	"time"

	"dedupledger/internal/setting"
)

// Text is one setting of a rule as the configuration writes it.
type Text struct {
	Name  string // window
	Shape setting.Shape
	Value string   // of a Scalar
	Items []string // of a List
	At    setting.Place
}

// Texts are the settings that the rule makes, in the order of the
// documentation; match and key stand first.
func (r *Rule) Texts() []Text {
	var set []Text
	for _, t := range r.all() {
		if t.set {
			set = append(set, t.Text)
		}
	}
	return set
}

type perhaps struct {
	Text
	set bool
}

// all is every setting of the rule, set or not.
func (r *Rule) all() []perhaps {
	return []perhaps{
		word("match", r.Match), word("key", r.Key),
		word("mode", r.Mode), word("entry", r.Entry),
		words("extractors", r.Extractors), words("aliases", r.Aliases),
		word("namespace", r.Namespace), word("hash", r.Hash),
		span("window", r.Window), span("ttl_max", r.TTLMax),
		yes("lenient", r.Lenient), yes("with_date", r.WithDate),
		word("durability", r.Durability), word("payload", r.Payload),
		words("sellers", r.Sellers), word("scheme", r.Scheme), yes("cxml_order", r.CXMLOrder),
		word("message_level", r.MessageLevel), words("json_pointers", r.JSONPointers),
		word("file_pattern", r.FilePattern), yes("oftp1", r.OFTP1),
	}
}

func word(name string, s Setting[string]) perhaps {
	return perhaps{Text{Name: name, Shape: setting.Scalar, Value: s.Value, At: s.At}, s.Set}
}

func words(name string, s Setting[[]string]) perhaps {
	return perhaps{Text{Name: name, Shape: setting.List, Items: s.Value, At: s.At}, s.Set}
}

func span(name string, s Setting[time.Duration]) perhaps {
	return word(name, Setting[string]{setting.FormatDuration(s.Value), s.Set, s.At})
}

func yes(name string, s Setting[bool]) perhaps {
	return word(name, Setting[string]{strconv.FormatBool(s.Value), s.Set, s.At})
}

// Explained is one setting of a flow and the rules that decide it.
type Explained struct {
	Name string
	// Choices are in order of precedence: the first whose rule fits the key
	// decides. The last one fits every key.
	Choices []Choice
}

// Choice is a value and the rule that it comes from.
type Choice struct {
	Text
	Rule *Rule // with Key set it speaks of some keys only
}

// Explain says of each setting of a tenant:flow what it is and which rule says
// so. With a canonical key (before with_date is appended) there is one choice
// each; without, one for each rule that decides for some keys, and the one for
// the rest. A flow that no rule speaks of is not known.
func (s *Set) Explain(scope, key string) ([]Explained, bool) {
	if f := s.resolve(scope); f == nil {
		return nil, false
	}
	const applies = 2 // match and key stand first: they are no settings of a flow
	var explained []Explained
	for i, n := range new(Rule).all()[applies:] {
		explained = append(explained, Explained{n.Name, s.choices(applies+i, scope, key)})
	}
	return explained, true
}

// choices are the rules that set the nth setting, up to the first that does so
// for all keys, or for the one that is asked about.
func (s *Set) choices(nth int, scope, key string) (found []Choice) {
	for i := range s.rules {
		r := &s.rules[i]
		t := r.all()[nth]
		last := i == len(s.rules)-1
		if !t.set || !last && !r.match.match(scope) || r.keyed && key != "" && !r.key.match(key) {
			continue
		}
		found = append(found, Choice{t.Text, &r.Rule})
		if !r.keyed || key != "" {
			break
		}
	}
	return found
}
