package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	pgx   = "github.com/jackc/pgx/v5"
	redis = "github.com/redis/go-redis/v9"
	kafka = "github.com/twmb/franz-go"
)

// border forbids packages to draw in others.
type border struct {
	why string
	// of are the packages it binds, by path below the module; a trailing /...
	// takes in all below. but are exceptions.
	of, but []string
	// never are import paths, each with all below it.
	never []string
	// direct looks at the package's own imports only, else at all it draws in.
	direct bool
	// tests looks at the imports of its tests, too.
	tests bool
}

// borders are those of ARCHITECTURE §6.
func borders() []border {
	in := func(paths ...string) []string {
		for i, p := range paths {
			paths[i] = module + "/" + p
		}
		return paths
	}
	return []border{
		{
			why: "the processor asks ledger's contract, never a driver or a tier",
			of:  []string{"processor"}, tests: true,
			never: append(in("ledger/cold", "ledger/hot", "migrations", "internal", "cmd"), pgx, redis),
		},
		{
			why: "the contract knows no driver and no Kafka client",
			of:  []string{"ledger"}, never: append(in("ledger/cold", "ledger/hot", "topics", "processor", "internal"), pgx, redis, kafka),
		},
		{
			why: "the tiers never import each other",
			of:  []string{"ledger/cold"}, tests: true, never: append(in("ledger/hot", "processor", "topics"), redis, kafka),
		},
		{
			why: "the tiers never import each other",
			of:  []string{"ledger/hot"}, tests: true, never: append(in("ledger/cold", "processor", "topics", "migrations"), pgx, kafka),
		},
		{
			why: "the wire contract knows no ledger tier and no wiring",
			of:  []string{"topics"}, never: append(in("ledger/cold", "ledger/hot", "processor", "internal", "migrations"), pgx, redis),
		},
		{
			why: "msgkey is pure: the standard library alone",
			of:  []string{"topics/msgkey"}, never: []string{module + "/ledger", module + "/topics", module + "/internal", "github.com", "golang.org/x", "go.yaml.in"},
		},
		{
			why: "msgkey is pure: no I/O, no clock, nothing to wait for",
			of:  []string{"topics/msgkey"}, direct: true, never: []string{"os", "net", "io/fs", "time", "context", "sync", "log"},
		},
		{
			why:   "rules and settings know neither stores nor the loop",
			of:    []string{"internal/rules", "internal/setting", "internal/app/config"},
			never: append(in("ledger/cold", "ledger/hot", "processor", "migrations"), pgx, redis),
		},
		{
			why: "the schema stands alone",
			of:  []string{"migrations"}, never: append(in("ledger", "processor", "topics", "internal"), redis, kafka),
		},
		{
			why: "only internal/app knows the tiers",
			of:  []string{"..."}, but: []string{"internal/app", "ledger/cold", "ledger/hot", "bench/...", "integration"}, direct: true,
			never: in("ledger/cold", "ledger/hot"),
		},
		{
			why: "only internal/app knows the loop, and internal/doctor its rule",
			of:  []string{"..."}, but: []string{"internal/app", "internal/doctor", "bench/...", "integration"}, direct: true, never: in("processor"),
		},
		{
			why: "nothing stands above the wiring but programs",
			of:  []string{"..."}, but: []string{"internal/app/...", "cmd/...", "bench/...", "internal/demo"}, direct: true, never: in("internal/app"),
		},
		{
			why: "what is for tests is imported by tests only",
			of:  []string{"..."}, but: []string{"integration/...", "ledger/ledgertest"}, direct: true,
			never: append(in("integration", "ledger/ledgertest", "internal/house"), "testing", "github.com/stretchr/testify", "go.uber.org/goleak"),
		},
		{
			why: "stand-ins for services come from internal/devservices",
			of:  []string{"..."}, but: []string{"internal/devservices", "bench/..."}, direct: true,
			never: []string{"github.com/twmb/franz-go/pkg/kfake", "github.com/alicebob/miniredis", "github.com/fergusstrange/embedded-postgres"},
		},
		{
			why: "the program carries no Docker client",
			of:  []string{"cmd/dedup"}, never: []string{module + "/internal/devservices/docker", "github.com/testcontainers", "github.com/moby", "github.com/docker"},
		},
		{
			why: "containers come from internal/devservices/docker",
			of:  []string{"..."}, but: []string{"internal/devservices/docker"}, direct: true, tests: true,
			never: []string{"github.com/testcontainers", "github.com/moby", "github.com/docker"},
		},
		{
			why: "log/slog is the only logger",
			of:  []string{"..."}, direct: true, tests: true, never: []string{"log$"},
		},
		{
			why: "a failed check ends the test: testify/require alone",
			of:  []string{"..."}, direct: true, tests: true,
			never: []string{"github.com/stretchr/testify/assert", "github.com/stretchr/testify/mock", "github.com/stretchr/testify/suite"},
		},
	}
}

// TestBorders holds every package to every border.
func TestBorders(t *testing.T) {
	t.Parallel()
	require.Empty(t, crossings(listPackages(t), borders()))
}

// TestBordersBite is the negative control: each border catches a package of its
// own that draws in each of what it forbids.
func TestBordersBite(t *testing.T) {
	t.Parallel()
	for _, b := range borders() {
		of := strings.TrimSuffix(strings.Replace(b.of[0], "...", "topics/elsewhere", 1), "/")
		for _, never := range b.never {
			bad := strings.TrimSuffix(never, "$")
			p := goPackage{ImportPath: module + "/" + of, Imports: []string{"fmt", bad}, Deps: []string{"fmt", bad}}
			require.NotEmpty(t, crossings([]goPackage{p}, []border{b}), "%s imports %s: %s", of, bad, b.why)
			if b.tests {
				p = goPackage{ImportPath: module + "/" + of, XTestImports: []string{bad}}
				require.NotEmpty(t, crossings([]goPackage{p}, []border{b}), "tests of %s import %s: %s", of, bad, b.why)
			}
			p = goPackage{ImportPath: module + "/" + of, Imports: []string{"fmt", "strings"}, Deps: []string{"fmt", "strings"}}
			require.Empty(t, crossings([]goPackage{p}, []border{b}))
		}
	}
}

// TestNames keeps packages from being drawers for anything.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		for part := range strings.SplitSeq(p.ImportPath, "/") {
			require.NotContains(t, []string{"util", "utils", "common", "helper", "helpers", "model", "models", "types", "misc", "shared"},
				part, "%s: name what it holds", p.ImportPath)
		}
	}
}

// crossings lists what packages draw in across borders.
func crossings(packages []goPackage, borders []border) []string {
	var found []string
	for _, b := range borders {
		for i := range packages {
			p := &packages[i]
			if !binds(b.of, p.ImportPath) || binds(b.but, p.ImportPath) {
				continue
			}
			for _, drawn := range b.looksAt(p) {
				if slices.ContainsFunc(b.never, func(never string) bool { return below(drawn, never) }) && drawn != p.ImportPath {
					found = append(found, fmt.Sprintf("%s draws in %s: %s", p.ImportPath, drawn, b.why))
				}
			}
		}
	}
	return found
}

func (b *border) looksAt(p *goPackage) []string {
	drawn := p.Deps
	if b.direct {
		drawn = p.Imports
	}
	if b.tests {
		drawn = slices.Concat(drawn, p.TestImports, p.XTestImports)
	}
	return drawn
}

// binds reports whether a package is one of those named.
func binds(names []string, path string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		if name == "..." {
			return true
		}
		if tree, whole := strings.CutSuffix(name, "/..."); whole {
			return below(path, module+"/"+tree)
		}
		return path == module+"/"+name
	})
}

// below reports whether path is tree or lies in it; with a $ only the former.
func below(path, tree string) bool {
	if exact, only := strings.CutSuffix(tree, "$"); only {
		return path == exact
	}
	return path == tree || strings.HasPrefix(path, tree+"/")
}
