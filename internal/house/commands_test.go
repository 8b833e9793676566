package house

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// manual is the built program, asked for its help.
type manual struct {
	program string
	pages   map[string]string // by command, "" for the program itself
}

// buildProgram builds dedup as a user would.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dedup")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "./cmd/dedup")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// page is the help of a command, or "" if there is no such command.
func (m *manual) page(t *testing.T, command ...string) string {
	t.Helper()
	name := strings.Join(command, " ")
	if text, asked := m.pages[name]; asked {
		return text
	}
	out, err := exec.CommandContext(t.Context(), m.program, append(command, "--help")...).Output()
	text := string(out)
	// Of an argument the program shows its command's help.
	usage := regexp.MustCompile(`(?m)^ *(?:Usage: )?dedup ` + regexp.QuoteMeta(name) + `(?: |$)`)
	if err != nil || name != "" && !usage.MatchString(text) {
		text = ""
	}
	m.pages[name] = text
	return text
}

var (
	called = regexp.MustCompile(`(?:^|[\s'(;])(?:bin/)?dedup ([^|;>'()]+)`)
	word1  = regexp.MustCompile(`^[a-z]+$`)
)

// TestCommands: each command and flag that a document names exists.
func TestCommands(t *testing.T) {
	t.Parallel()
	m := &manual{program: buildProgram(t), pages: map[string]string{}}
	check(t, func(span string) string { return m.wrong(t, span) })

	for _, good := range []string{"dedup key invoice.edi", "dedup migrate up", "dedup topics ensure raw-ingest.as2 --dry-run -c dedup.yaml"} {
		require.Empty(t, m.wrong(t, good), good)
	}
	for _, bad := range []string{"dedup kee x", "dedup migrate down", "dedup run --no-such", "--no-such"} {
		require.NotEmpty(t, m.wrong(t, bad), bad)
	}
}

// wrong says what of a span is no command or flag of the program.
func (m *manual) wrong(t *testing.T, span string) string {
	t.Helper()
	for _, c := range called.FindAllStringSubmatch(span, -1) {
		if w := m.wrongCall(t, strings.Fields(c[1])); w != "" {
			return w
		}
	}
	if _, flag, ok := strings.Cut(span, "ARGS="); ok && strings.HasPrefix(span, "make demo") {
		return m.wrongCall(t, []string{"demo", flag})
	}
	foreign := []string{"--isolation-level", "--profile"}
	if strings.HasPrefix(span, "--") && !slices.Contains(foreign, strings.Fields(span)[0]) {
		return m.nowhere(t, strings.Fields(span)[0])
	}
	return ""
}

func (m *manual) wrongCall(t *testing.T, words []string) string {
	t.Helper()
	var command []string
	page := m.page(t)
	for _, w := range words {
		switch {
		case strings.HasPrefix(w, "-") && w != "-":
			if !hasFlag(page, w) {
				return "dedup " + strings.Join(command, " ") + " has no flag " + w
			}
		case word1.MatchString(w) && (len(command) == 0 || strings.Contains(page, "Available Commands:")):
			command = append(command, w)
			if page = m.page(t, command...); page == "" {
				return "no command dedup " + strings.Join(command, " ")
			}
		}
	}
	return ""
}

// nowhere looks for a flag that is named alone.
func (m *manual) nowhere(t *testing.T, flag string) string {
	t.Helper()
	for _, command := range [][]string{nil, {"run"}, {"demo"}, {"key"}, {"migrate", "up"}, {"topics", "ensure"}, {"topics", "hanging"}, {"doctor"}, {"config", "show"}, {"config", "flow"}, {"repair"}, {"import"}} {
		if hasFlag(m.page(t, command...), flag) {
			return ""
		}
	}
	return "no command has this flag"
}

func hasFlag(page, flag string) bool {
	flag, _, _ = strings.Cut(flag, "=")
	return regexp.MustCompile(`(?:^|[\s,])` + regexp.QuoteMeta(flag) + `(?:[\s,=]|$)`).MatchString(page)
}
