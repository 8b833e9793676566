package crash

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// tag is the build tag under which the filter asks at each point what is to
// happen there.
const tag = "faultpoints"

// root is the module's folder, seen from this package's tests.
const root = "../.."

var named = regexp.MustCompile(`\.at\("([^"]*)"\)`)

// steps are the names of the points between two steps, as the filter's source
// has them.
func steps(t testing.TB) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "processor", "*.go"))
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range named.FindAllSubmatch(text, -1) {
			require.NotContains(t, names, string(m[1]), "two points of one name")
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	return names
}

// TestTheProgramHasNoFaultPoints: of the points nothing is in the program as it
// is delivered, neither a function nor a name. Built with the tag, all are.
func TestTheProgramHasNoFaultPoints(t *testing.T) {
	t.Parallel()
	names := steps(t)
	require.Greater(t, len(names), 40)
	looked := slices.Concat(names, []string{"processor.(*session).at", "processor.faultPoints.ask"})
	found := func(flags ...string) (there []string) {
		program := filepath.Join(t.TempDir(), "dedup")
		args := append(append([]string{"build", "-trimpath"}, flags...), "-o", program, "./cmd/dedup")
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		text, err := os.ReadFile(program)
		require.NoError(t, err)
		for _, name := range looked {
			if bytes.Contains(text, []byte(name)) {
				there = append(there, name)
			}
		}
		return there
	}
	require.Empty(t, found())
	require.Equal(t, looked, found("-tags", tag))
}
