package config

import (
	"maps"
	"slices"
	"strings"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
)

// MakesKeys tells what makes keys outside the rules: in which headers senders put
// what keys are made of, and where a record tells its scope.
func (c *Config) MakesKeys() []rules.Made {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.Topics.HeaderNames)) {
		names = append(names, strings.ToLower(name+"="+c.Topics.HeaderNames[name])) // they match in any case
	}
	return []rules.Made{
		{Path: "topics.scope_from", At: c.from("topics.scope_from"), Set: map[string][]string{"scope_from": c.Topics.ScopeFrom}},
		{Path: "topics.header_names", At: c.from("topics.header_names"), Set: map[string][]string{"header_names": names}},
	}
}

// from is where a key was set, in words.
func (c *Config) from(path string) string {
	if at := c.Places[path]; at != (setting.Place{}) {
		return at.String()
	}
	return "default"
}
