package house

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's folder, seen from this package's tests.
const root = "../.."

const module = "dedupledger"

// topLevel are the nouns of the top level (ARCHITECTURE §6). Each may be
// missing until its time; nothing else may be there.
func topLevel() []string {
	return []string{
		"cmd", "processor", "ledger", "topics", "migrations", "integration",
		"outbox", "inbox", "internal", "bench", "deploy", "docs", "examples",
	}
}

// TestTopLevel keeps the top level to its nouns.
func TestTopLevel(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, e := range entries {
		built := e.Name() == "bin" || strings.HasPrefix(e.Name(), ".")
		if e.IsDir() && !built {
			require.Contains(t, topLevel(), e.Name(), "a folder at the top level that is none of the nouns")
		}
	}
}

// goPackage is what the go command tells of a package.
type goPackage struct {
	ImportPath                string
	Imports, Deps             []string
	TestImports, XTestImports []string
}

// listPackages asks the go command for every package of the module.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps,TestImports,XTestImports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p goPackage
		require.NoError(t, dec.Decode(&p))
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

// textFile is a file of the tree that people read or compile.
type textFile struct {
	path string // slash-separated, from the root
	text string
}

// treeFiles reads the files whose name ends so, but those that are built,
// fetched or found by the fuzzer.
func treeFiles(t *testing.T, endings ...string) []textFile {
	t.Helper()
	var files []textFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains([]string{".git", ".services", "bin"}, rel) || strings.HasSuffix(rel, "testdata/fuzz") {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(rel, e) }) {
			return nil
		}
		text, err := os.ReadFile(path)
		files = append(files, textFile{rel, string(text)})
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}
