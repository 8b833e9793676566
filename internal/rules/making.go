package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dedupledger/internal/setting"
)

// keysVersion changes where the same rules make other keys than in the release
// before.
const keysVersion = 1

// makesKeys are the settings by which the same message gets one key or another.
func makesKeys() []string {
	return []string{
		"extractors", "aliases", "namespace", "lenient", "with_date",
		"sellers", "scheme", "cxml_order", "message_level", "json_pointers", "file_pattern", "oftp1",
	}
}

// Making is everything that makes keys: of each rule what it sets of that, in
// order, and before them how records are read. Two processes with one Making find
// the same key in the same message. It is kept in the ledger as JSON.
type Making []Made

// Made is what one rule, or one key of the configuration, says about keys.
type Made struct {
	Path  string `json:"path,omitempty"` // flows[4]; topics.header_names; "" of a built-in rule
	At    string `json:"at"`             // dedup.yaml:12
	Match string `json:"match,omitempty"`
	Key   string `json:"key,omitempty"`
	// Set has the settings by name, a list as its items.
	Set map[string][]string `json:"set"`
}

// Making tells what makes keys, behind what the configuration says of that
// outside its rules.
func (s *Set) Making(outside ...Made) Making {
	m := Making(slices.Clone(outside))
	for i := range s.rules {
		if made := s.rules[i].made(); len(made.Set) > 0 {
			m = append(m, made)
		}
	}
	return m
}

func (r *Rule) made() Made {
	m := Made{Path: r.Path, At: r.At.String(), Match: r.Match.Value, Key: r.Key.Value, Set: map[string][]string{}}
	if m.Match == "" {
		m.Match = "*:*" // the defaults
	}
	for _, t := range r.Texts() {
		if !slices.Contains(makesKeys(), t.Name) {
			continue
		}
		if m.Set[t.Name] = []string{t.Value}; t.Shape == setting.List {
			m.Set[t.Name] = append([]string{}, t.Items...)
		}
	}
	return m
}

// Fingerprint is 16 hex digits that are the same where the Making is, wherever its
// rules are written.
func (m Making) Fingerprint() string {
	plain := make([]any, 0, len(m)+1)
	plain = append(plain, keysVersion)
	for _, made := range m {
		plain = append(plain, []any{made.Match, made.Key, made.Set})
	}
	text, err := json.Marshal(plain) // maps in the order of their keys
	if err != nil {
		return err.Error() // of strings there is none
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// ParseMaking reads what the ledger keeps.
func ParseMaking(text []byte) (m Making, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("reading the rules that the ledger keeps: %w", err)
	}
	return m, nil
}

// shownDifferences are told; the rest is counted.
const shownDifferences = 5

// Differences says, a sentence each, which of our rules are not as the active
// ones, by name and line. None: both make the same keys.
func (m Making) Differences(active Making) []string {
	ours, theirs := m, active
	for len(ours) > 0 && len(theirs) > 0 && ours[0].same(&theirs[0]) {
		ours, theirs = ours[1:], theirs[1:]
	}
	for len(ours) > 0 && len(theirs) > 0 && ours[len(ours)-1].same(&theirs[len(theirs)-1]) {
		ours, theirs = ours[:len(ours)-1], theirs[:len(theirs)-1]
	}
	var told []string
	for len(ours) > 0 || len(theirs) > 0 {
		switch {
		case len(ours) > 0 && len(theirs) > 0 && ours[0].Match == theirs[0].Match && ours[0].Key == theirs[0].Key:
			told = append(told, ours[0].against(&theirs[0])...)
			ours, theirs = ours[1:], theirs[1:]
		case len(ours) > 0 && !slices.ContainsFunc(theirs, ours[0].speaksOf):
			told = append(told, ours[0].String()+" is not among the active rules")
			ours = ours[1:]
		case len(theirs) > 0:
			told = append(told, "the active rules have, before it, "+theirs[0].String())
			if len(ours) == 0 {
				told[len(told)-1] = "the active rules also have " + theirs[0].String()
			}
			theirs = theirs[1:]
		}
	}
	if more := len(told) - shownDifferences; more > 0 {
		told = append(told[:shownDifferences], fmt.Sprintf("and %d more", more))
	}
	return told
}

func (m *Made) same(o *Made) bool {
	return m.speaksOf(*o) && maps.EqualFunc(m.Set, o.Set, slices.Equal[[]string])
}

func (m *Made) speaksOf(o Made) bool { return m.Match == o.Match && m.Key == o.Key }

// against tells the settings of two rules that speak of the same.
func (m *Made) against(active *Made) (told []string) {
	names := slices.Sorted(maps.Keys(m.Set))
	for _, name := range slices.Sorted(maps.Keys(active.Set)) {
		if _, ours := m.Set[name]; !ours {
			names = append(names, name)
		}
	}
	for _, name := range names {
		ours, we := m.Set[name]
		theirs, they := active.Set[name]
		if we == they && slices.Equal(ours, theirs) {
			continue
		}
		told = append(told, fmt.Sprintf("%s: %s is %s here and %s in the active rules (%s)", m.who(), name, shown(ours, we), shown(theirs, they), active.At))
	}
	return told
}

func shown(items []string, set bool) string {
	switch text := strings.Join(items, ", "); {
	case !set:
		return "not set"
	case text == "":
		return "none"
	default:
		return text
	}
}

// who names a rule by its place and by what it speaks of.
func (m *Made) who() string {
	name := strings.TrimSpace(strings.TrimSpace(m.Path+" "+m.Match) + " " + m.Key)
	return fmt.Sprintf("%s (%s)", name, m.At)
}

func (m *Made) String() string {
	var set []string
	for _, name := range slices.Sorted(maps.Keys(m.Set)) {
		set = append(set, name+" "+shown(m.Set[name], true))
	}
	return m.who() + ": " + strings.Join(set, "; ")
}

// Rules are rules that make keys as these do. The error is setting.Problems, of
// rules that only another version of the program knows.
func (m Making) Rules() (*Set, error) {
	var all []Rule
	for _, made := range m {
		if made.Match == "" {
			continue // says how records are read
		}
		at := setting.Place{Name: made.At}
		var entries []setting.Entry
		add := func(name string, items ...string) {
			w := setting.Written{At: at, Shape: setting.Scalar}
			if slices.Contains([]string{"extractors", "aliases", "sellers", "json_pointers"}, name) {
				w.Shape, w.Items = setting.List, items
			} else {
				w.Text = strings.Join(items, "")
			}
			entries = append(entries, setting.Entry{Name: name, Value: w})
		}
		add("match", made.Match)
		if made.Key != "" {
			add("key", made.Key)
		}
		for _, name := range slices.Sorted(maps.Keys(made.Set)) {
			add(name, made.Set[name]...)
		}
		r, problems := Read(made.Path, at, entries)
		if len(problems) > 0 {
			return nil, problems
		}
		all = append(all, r)
	}
	return New(all, false)
}
