package main

import (
	"dedupledger/internal/app/config"
	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
)

// shownKey is one key for machines. A value is a text, a list of texts or a
// map; of a secret it is what may be shown.
type shownKey struct {
	Key      string `json:"key"`
	Value    any    `json:"value"`
	From     string `json:"from,omitempty"` // default, file:line, variable
	Hidden   bool   `json:"hidden,omitempty"`
	Required bool   `json:"required,omitempty"`
	Later    bool   `json:"later,omitempty"`
	Meaning  string `json:"meaning,omitempty"`
}

// shown is `dedup config show -o json`.
type shown struct {
	Keys  []shownKey  `json:"keys"`
	Flows []shownRule `json:"flows"`
}

type shownRule struct {
	From     string         `json:"from"`
	Settings map[string]any `json:"settings"`
}

func shownOf(e *config.Effective) shown {
	s := shown{Flows: []shownRule{}}
	for _, v := range e.Values {
		s.Keys = append(s.Keys, shownKey{
			Key: v.Path, Value: plainValue(v.Written.Shape, v.Written.Text, v.Written.Items, v.Written.Pairs),
			From: v.From(), Hidden: v.Hidden, Required: v.Required, Later: v.Later,
		})
	}
	all := e.Set.Rules()
	for i := range all {
		s.Flows = append(s.Flows, shownRule{all[i].At.String(), settingsOf(&all[i])})
	}
	return s
}

func keysOf(keys []config.Key) shown {
	s := shown{Flows: []shownRule{}}
	for _, k := range keys {
		s.Keys = append(s.Keys, shownKey{
			Key: k.Path, Value: plainValue(k.Default.Shape, k.Default.Text, k.Default.Items, k.Default.Pairs),
			Required: k.Required, Later: k.Later, Meaning: k.Meaning,
		})
	}
	return s
}

func settingsOf(r *rules.Rule) map[string]any {
	settings := map[string]any{}
	for _, t := range r.Texts() {
		settings[t.Name] = plainValue(t.Shape, t.Value, t.Items, nil)
	}
	return settings
}

func plainValue(shape setting.Shape, text string, items []string, pairs map[string]string) any {
	switch shape {
	case setting.List:
		return append([]string{}, items...) // never null
	case setting.Map:
		if pairs == nil {
			pairs = map[string]string{}
		}
		return pairs
	default:
		return text
	}
}
