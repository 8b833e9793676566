package config

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
)

const defaultsHead = `# dedup.yaml: every key with its default. Must be set: kafka.brokers, redis.addrs, postgres.url.
# The environment wins over the file: DEDUP_ + path in upper case, "_" between (postgres.url is DEDUP_POSTGRES_URL),
# lists a,b, maps k=v,k=v. Durations: 500ms 30s 15m 12h 7d 10y. Sizes: 64KiB 10MiB. An unknown key is an error.
# What is left out has its default, so a file needs the keys that it changes and no others.
# (later) is of a later release: any other value is refused.
`

// WriteDefaults writes a configuration file that has every key, its default and
// its meaning.
func WriteDefaults(w io.Writer) error {
	values := make([]Value, 0)
	for _, k := range Keys() {
		values = append(values, Value{Key: k, Written: k.Default})
	}
	text := defaultsHead + yamlOf(values, func(v Value) string {
		switch {
		case v.Required:
			return "must be set: " + plain(v.Meaning)
		case v.Later:
			return "(later) " + plain(v.Meaning)
		default:
			return plain(v.Meaning)
		}
	})
	text += "flows: []\n" + builtinComment("Your rules come first. Built in, behind them:")
	return write(w, text)
}

// WriteYAML writes the configuration as a file that can be loaded again, with
// the place where each value comes from. A secret is left out.
func (e *Effective) WriteYAML(w io.Writer) error {
	text := yamlOf(e.Values, func(v Value) string {
		comment := v.From()
		switch {
		case v.Required && v.From() == "default":
			comment = "must be set"
		case v.Hidden && v.Written.Text != "":
			comment += ", its password is not shown"
		case v.Hidden:
			comment += ", not shown"
		}
		return comment
	})
	return write(w, text+e.flowsYAML())
}

func (e *Effective) flowsYAML() string {
	var b strings.Builder
	b.WriteString("flows:")
	if len(e.Flows) == 0 {
		b.WriteString(" []")
	}
	b.WriteByte('\n')
	for i := range e.Flows {
		fmt.Fprintf(&b, "  - %s  # %s\n", ruleYAML(&e.Flows[i]), e.Flows[i].At)
	}
	if e.BuiltinRules {
		b.WriteString(builtinComment("built in, behind yours:"))
	}
	return b.String()
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

// yamlOf writes keys in sections. A secret that is not shown is commented out,
// or the file would set it to nothing when it is loaded.
func yamlOf(values []Value, comment func(Value) string) string {
	var b strings.Builder
	var open []string // sections of the line before
	for _, v := range values {
		path := strings.Split(v.Path, ".")
		sections, name := path[:len(path)-1], path[len(path)-1]
		same := 0
		for same < len(open) && same < len(sections) && open[same] == sections[same] {
			same++
		}
		for i, s := range sections[same:] {
			fmt.Fprintf(&b, "%s%s:\n", indent(same+i), s)
		}
		open = sections
		line := indent(len(sections)) + name + ": " + valueYAML(v.Written)
		if v.Hidden && v.Written.Text == "" {
			line = indent(len(sections)) + "# " + name + ": ***"
		}
		fmt.Fprintf(&b, "%-40s  # %s\n", line, comment(v))
	}
	return b.String()
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

func valueYAML(w setting.Written) string {
	switch w.Shape {
	case setting.List:
		items := make([]string, len(w.Items))
		for i, item := range w.Items {
			items[i] = scalarYAML(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case setting.Map:
		pairs := make([]string, 0, len(w.Pairs))
		for _, name := range slices.Sorted(maps.Keys(w.Pairs)) {
			pairs = append(pairs, scalarYAML(name)+": "+scalarYAML(w.Pairs[name]))
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	default:
		return scalarYAML(w.Text)
	}
}

var bareYAML = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]*$`)

// scalarYAML quotes what YAML could take for something else: null has no value.
func scalarYAML(s string) string {
	switch {
	case bareYAML.MatchString(s) && !strings.EqualFold(s, "null"):
		return s
	case s == "":
		return `""`
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) || !utf8.ValidString(s):
		return strconv.QuoteToASCII(s)
	default:
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
}

func ruleYAML(r *rules.Rule) string {
	texts := r.Texts()
	set := make([]string, len(texts))
	for i, t := range texts {
		set[i] = t.Name + ": " + valueYAML(setting.Written{Shape: t.Shape, Text: t.Value, Items: t.Items})
	}
	return "{" + strings.Join(set, ", ") + "}"
}

func builtinComment(head string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  # %s\n", head)
	for _, r := range rules.Builtin() {
		fmt.Fprintf(&b, "  # - %s\n", ruleYAML(&r))
	}
	return b.String()
}

var (
	aside = regexp.MustCompile(` \(\[[^\]]*\]\([^)]*\)\)`)
	link  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// plain is Markdown without its marks and without links that stand aside.
func plain(markdown string) string {
	return strings.ReplaceAll(link.ReplaceAllString(aside.ReplaceAllString(markdown, ""), "$1"), "`", "")
}
