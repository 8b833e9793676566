package config

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"dedupledger/internal/setting"
)

// pair is one key of a mapping.
type pair struct {
	name  string
	node  *yaml.Node
	value *yaml.Node
}

// pairs are the keys of a mapping; one that is written twice is reported and
// given once.
func (f *file) pairs(n *yaml.Node, path string) []pair {
	var all []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := resolved(n.Content[i])
		switch {
		case name.Kind != yaml.ScalarNode:
			f.report(name, path, "a key must be a word")
		case slices.ContainsFunc(all, func(p pair) bool { return p.name == name.Value }):
			f.report(name, join(path, name.Value), "written twice in one section")
		default:
			all = append(all, pair{name.Value, name, resolved(n.Content[i+1])})
		}
	}
	return all
}

func (f *file) written(n *yaml.Node) setting.Written {
	w := setting.Written{At: f.place(n), Shape: setting.Nested}
	switch n.Kind { //nolint:exhaustive // a document and an alias are never met here
	case yaml.ScalarNode:
		w.Shape, w.Text = setting.Scalar, n.Value
		if n.ShortTag() == "!!null" {
			w.Shape, w.Text = setting.Nothing, ""
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			item = resolved(item)
			if item.Kind != yaml.ScalarNode {
				return w
			}
			w.Items = append(w.Items, item.Value)
		}
		w.Shape = setting.List
	case yaml.MappingNode:
		w.Pairs = map[string]string{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := resolved(n.Content[i]), resolved(n.Content[i+1])
			if name.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
				return w
			}
			w.Pairs[name.Value] = value.Value
		}
		w.Shape = setting.Map
	}
	return w
}

// resolved follows an alias. That cannot run in circles: what is read is never
// deeper than a list in a rule, whatever an alias points at.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func (f *file) place(n *yaml.Node) setting.Place { return setting.Place{Name: f.name, Line: n.Line} }

func (f *file) report(n *yaml.Node, path, why string) {
	f.problems = append(f.problems, setting.Problem{At: f.place(n), Path: path, Why: why})
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
