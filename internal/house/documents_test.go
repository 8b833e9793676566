package house

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// document is a page of the tree, line by line.
type document struct {
	name  string // from the root
	lines []line
}

type line struct {
	no    int
	text  string
	fence string // language of the block it stands in, "text" if none is named; "" outside
}

// documents are README and the other pages at the root, and docs.
func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	for _, f := range treeFiles(t, ".md") {
		if dir := path.Dir(f.path); dir == "." || dir == "docs" {
			all = append(all, parse(f.path, f.text))
		}
	}
	require.GreaterOrEqual(t, len(all), 5)
	return all
}

func parse(name, text string) document {
	d := document{name: name}
	fence := ""
	for i, l := range strings.Split(text, "\n") {
		if lang, ok := strings.CutPrefix(strings.TrimSpace(l), "```"); ok {
			switch {
			case fence != "":
				fence = ""
			case lang == "":
				fence = "text"
			default:
				fence = lang
			}
			continue
		}
		d.lines = append(d.lines, line{i + 1, l, fence})
	}
	return d
}

var inTicks = regexp.MustCompile("`([^`]+)`")

// spans are the line's words in backquotes; of a block for the shell, the line.
func (l line) spans() []string {
	if l.fence != "" {
		if slices.Contains([]string{"text", "sh", "bash", "console"}, l.fence) {
			return []string{strings.TrimPrefix(strings.TrimSpace(l.text), "$ ")}
		}
		return nil
	}
	var all []string
	for _, m := range inTicks.FindAllStringSubmatch(l.text, -1) {
		all = append(all, m[1])
	}
	return all
}

// check calls f for every span of every document; what f answers is wrong.
func check(t *testing.T, f func(span string) string) {
	t.Helper()
	for _, d := range documents(t) {
		for _, l := range d.lines {
			for _, s := range l.spans() {
				if wrong := f(s); wrong != "" {
					t.Errorf("%s:%d: `%s`: %s", d.name, l.no, s, wrong)
				}
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	ownFile = regexp.MustCompile(`^[\w.*/-]+\.(go|sql|md|mod|yml|sh)$`)
)

// TestLinks: each link within the tree leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, d := range documents(t) {
		for _, l := range d.lines {
			for _, m := range link.FindAllStringSubmatch(l.text, -1) {
				if l.fence != "" || strings.Contains(m[1], "://") {
					continue
				}
				file, heading, _ := strings.Cut(m[1], "#")
				target := d.name
				if file != "" {
					target = path.Join(path.Dir(d.name), file)
				}
				text, err := os.ReadFile(filepath.Join(root, target))
				require.NoErrorf(t, err, "%s:%d", d.name, l.no)
				if heading != "" {
					require.Containsf(t, headings(string(text)), heading, "%s:%d: %s has no such heading", d.name, l.no, target)
				}
			}
		}
	}
}

// ownAnchor is a heading's shorter name, which alerts and messages use.
var ownAnchor = regexp.MustCompile(` *<a id="([a-z-]+)"></a>`)

// headings are the anchors of a page as code hosts make them, and its own.
func headings(text string) []string {
	var all []string
	for _, l := range parse("", text).lines {
		title := strings.TrimLeft(l.text, "#")
		if l.fence != "" || title == l.text {
			continue
		}
		for _, own := range ownAnchor.FindAllStringSubmatch(title, -1) {
			all = append(all, own[1])
		}
		title = ownAnchor.ReplaceAllString(title, "")
		slug := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		all = append(all, strings.ReplaceAll(slug, " ", "-"))
	}
	return all
}

// TestPaths: each file and folder that a document names is there.
func TestPaths(t *testing.T) {
	t.Parallel()
	check(t, wrongPath)
}

func wrongPath(span string) string {
	first, _, inside := strings.Cut(strings.TrimPrefix(span, "./"), "/")
	ours := inside && (slices.Contains(topLevel(), first) || first == ".ci") && !strings.ContainsAny(span, " {<")
	if !ours && (!ownFile.MatchString(span) || strings.HasPrefix(span, "kafka-")) {
		return ""
	}
	found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(span, "..."))))
	if err != nil || len(found) == 0 {
		return "no such file"
	}
	return ""
}

// TestMakeTargets: each target that a document names is in the Makefile.
func TestMakeTargets(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*##`).FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, m[1])
	}
	require.Equal(t, []string{"help", "demo", "services", "build", "test", "lint", "bench", "bench-keys", "docker-slice", "compose-check", "chaos", "crash", "controls", "fuzz"}, targets)
	check(t, func(span string) string { return wrongTarget(targets, span) })
	require.NotEmpty(t, wrongTarget(targets, "make tset"))
}

func wrongTarget(targets []string, span string) string {
	for _, m := range regexp.MustCompile(`(?:^|[;&] *)make ([a-z-]+)`).FindAllStringSubmatch(span, -1) {
		if !slices.Contains(targets, m[1]) {
			return fmt.Sprintf("make has no target %s", m[1])
		}
	}
	return ""
}

// TestNamesInSource: names that only programs spell (metrics, tables, SQL
// functions, environment variables, record headers) stand in the source.
func TestNamesInSource(t *testing.T) {
	t.Parallel()
	known := sourceNames(t)
	month := regexp.MustCompile(`_\d{4}_\d\d$`)
	for _, d := range documents(t) {
		for _, l := range d.lines {
			for _, name := range name.FindAllString(l.text, -1) {
				name = strings.TrimRight(month.ReplaceAllString(name, ""), "_-")
				if name == "DEDUP" || strings.HasPrefix(name, "dedup-") && !slices.Contains(l.spans(), name) {
					continue
				}
				require.Truef(t, known[name], "%s:%d names %s, which the source does not", d.name, l.no, name)
			}
		}
	}
	require.False(t, known["dedup_no_such_total"])
}

var name = regexp.MustCompile(`\b(DEDUP_[A-Z0-9_]+|dedup_[a-z0-9_]+|dedup-[a-z0-9-]+)`)

// sourceNames are the names of this kind in programs and SQL, tests left out,
// and the environment variables of the configuration.
func sourceNames(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, f := range treeFiles(t, ".go", ".sql", "Makefile", "docker-compose.yml") {
		if strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "internal/house/") {
			continue
		}
		for _, n := range name.FindAllString(f.text, -1) {
			known[n] = true
		}
	}
	for _, key := range configurationKeys(t) {
		known[variable(key)] = true
	}
	return known
}

// TestDataAtRisk: a section about a fault begins with the question that its
// reader has.
func TestDataAtRisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page   string
		others []string // sections that are about no fault
	}{
		{"docs/runbook.md", []string{`"Please replay"`, "Exit codes"}},
		{"docs/operations.md", []string{
			"Start", "Stop", "Exit codes", "Several processes", "Health", "Doctor", "Rotating secrets",
			"Synchronous standby", "What people decide", "Topics", "Months", "Metrics", "Logs", "Figures of outages",
		}},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.page))
		require.NoError(t, err)
		sections := strings.Split("\n"+string(text), "\n## ")[1:]
		require.Greater(t, len(sections), len(c.others), c.page)
		for _, s := range sections {
			title, rest, _ := strings.Cut(s, "\n")
			title = ownAnchor.ReplaceAllString(title, "")
			first := strings.TrimLeft(strings.TrimSpace(rest), "*")
			if !slices.Contains(c.others, title) && !strings.HasPrefix(first, "Is data at risk?") {
				t.Errorf("%s, %s: begin with *Is data at risk?* and the answer", c.page, title)
			}
		}
	}
}

// TestComplete: operations.md has every metric and tables.md every table and
// function; message-keys.md and README have every code.
func TestComplete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page    string
		ending  string
		in      string
		pattern *regexp.Regexp
	}{
		{"docs/operations.md", ".go", "", regexp.MustCompile(`"(dedup_[a-z_]+[a-z])", "|Name: "(dedup_[a-z_]+)"`)},
		{"docs/tables.md", ".sql", "migrations/sql/", regexp.MustCompile(`(?m)^create (?:table|view|function|type) (dedup_[a-z0-9_]+)`)},
		{"README.md", ".go", "topics/doc.go", regexp.MustCompile(`= "([a-z]+\.[a-z_]+)"`)},
		{"docs/message-keys.md", ".go", "topics/msgkey/codes.go", regexp.MustCompile(`Code = "([a-z0-9]+[._][a-z_]+)"`)},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.page))
		require.NoError(t, err)
		found := 0
		for _, f := range treeFiles(t, c.ending) {
			if !strings.HasPrefix(f.path, c.in) || strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "internal/house/") {
				continue
			}
			for _, m := range c.pattern.FindAllStringSubmatch(f.text, -1) {
				found++
				named := strings.Join(m[1:], "")
				// A code of a feature that comes later may be left out.
				if !slices.Contains([]string{"scope.tenant_mismatch", "key.not_found"}, named) {
					explains(t, c.page, string(text), named, f.path)
				}
			}
		}
		require.Greater(t, found, 5, c.page)
	}
}

// explains goes on to the next name, so that one run tells all that are missing.
func explains(t *testing.T, page, text, named, source string) {
	t.Helper()
	if !strings.Contains(text, "`"+named+"`") && !strings.Contains(text, "\n## "+named+"\n") {
		t.Errorf("%s does not explain %s of %s", page, named, source)
	}
}
