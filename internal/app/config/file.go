package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
)

// maxFile bounds a configuration file; 4096 rules take half a megabyte.
const maxFile = 4 << 20

// file is a configuration file taken apart, with everything wrong in it.
type file struct {
	name     string
	values   map[string]setting.Written // by path, of known keys only
	flows    []rules.Rule
	problems setting.Problems
}

// readFile takes the file apart into known keys. It looks at the nodes of the
// YAML document and not at a decoded structure, because only nodes have lines,
// show a key that is written twice, and let every fault be reported at once.
func readFile(name string, known []key) file {
	f := file{name: name, values: map[string]setting.Written{}}
	text, err := readLimited(name)
	if err != nil {
		return f.fail(err.Error())
	}
	return f.parse(text, known)
}

func readLimited(name string) ([]byte, error) {
	r, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err) // the name stands in front of every problem
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("larger than %s", setting.FormatSize(maxFile))
	}
	return text, nil
}

func (f file) fail(why string) file {
	f.problems = append(f.problems, setting.Problem{At: setting.Place{Name: f.name}, Why: why})
	return f
}

func (f file) parse(text []byte, known []key) file {
	var root, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return f // nothing but comments
	case err != nil:
		return f.fail("not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
	case len(root.Content) != 1:
		return f.fail("not one YAML document")
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return f.fail("more than one YAML document")
	}
	top := resolved(root.Content[0])
	if top.Kind == yaml.ScalarNode && top.ShortTag() == "!!null" {
		return f
	}
	f.section(top, "", known)
	return f
}

// section reads the keys below path, "" for the whole file.
func (f *file) section(n *yaml.Node, path string, known []key) {
	names := namesBelow(path, known)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return // a section without keys
	}
	if n.Kind != yaml.MappingNode {
		f.report(n, path, "not a section; known keys are "+strings.Join(names, ", "))
		return
	}
	for _, e := range f.pairs(n, path) {
		child := join(path, e.name)
		switch i := slices.IndexFunc(known, func(k key) bool { return k.path == child }); {
		case i >= 0:
			f.values[child] = f.written(e.value)
		case child == "flows":
			f.rules(e.value)
		case !slices.Contains(names, e.name):
			f.report(e.node, child, "unknown key; known are "+strings.Join(names, ", "))
		default:
			f.section(e.value, child, known)
		}
	}
}

// namesBelow are the keys and sections directly below path.
func namesBelow(path string, known []key) []string {
	var names []string
	for _, k := range known {
		rest, below := strings.CutPrefix(k.path, path+".")
		if path == "" {
			rest, below = k.path, true
		}
		name, _, _ := strings.Cut(rest, ".")
		if below && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if path == "" {
		names = append(names, "flows")
	}
	return names
}

func (f *file) rules(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		f.report(n, "flows", "not a list; write one rule a line: - {match: \"acme:*\", window: 7d}")
		return
	}
	for i, item := range n.Content {
		path := fmt.Sprintf("flows[%d]", i)
		item = resolved(item)
		if item.Kind != yaml.MappingNode {
			f.report(item, path, `not a rule; write {match: "acme:*", window: 7d}`)
			continue
		}
		var entries []setting.Entry
		for _, e := range f.pairs(item, path) {
			entries = append(entries, setting.Entry{Name: e.name, Value: f.written(e.value)})
		}
		rule, problems := rules.Read(path, f.place(item), entries)
		f.flows = append(f.flows, rule)
		f.problems = append(f.problems, problems...)
	}
}
