package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The controls are run by hand; that they still fit the product is tested always.
func TestEveryControlFits(t *testing.T) {
	t.Parallel()
	for i := range controls {
		c := &controls[i]
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(c.file)))
			require.NoError(t, err)
			broken, err := c.apply(string(text))
			require.NoError(t, err)
			require.NotEqual(t, string(text), broken)
			require.NotPanics(t, func() { regexp.MustCompile(c.says) })
			top, _, _ := strings.Cut(c.test, "/")
			require.True(t, hasTest(t, c.in, top), "%s has no %s", c.in, top)
			for _, ch := range c.changes {
				require.Empty(t, replacedBy(t, c.file, string(text), ch.old), "nothing runs what %s breaks", c.file)
			}
		})
	}
}

func hasTest(t *testing.T, in, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", in, "*_test.go"))
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		if strings.Contains(string(text), "func "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}

var sqlFunction = regexp.MustCompile(`create (?:or replace )?function (\w+)\(`)

// replacedBy is the later migration that makes the function anew which has a text.
func replacedBy(t *testing.T, file, text, old string) string {
	t.Helper()
	if filepath.Ext(file) != ".sql" {
		return ""
	}
	before, _, _ := strings.Cut(text, old)
	above := sqlFunction.FindAllStringSubmatch(before, -1)
	require.NotEmpty(t, above, "%q is in no function", old)
	all, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash("migrations/sql/*.sql")))
	require.NoError(t, err)
	for _, later := range all {
		if filepath.Base(later) <= filepath.Base(file) {
			continue
		}
		made, err := os.ReadFile(later)
		require.NoError(t, err)
		for _, f := range sqlFunction.FindAllStringSubmatch(string(made), -1) {
			if f[1] == above[len(above)-1][1] {
				return later
			}
		}
	}
	return ""
}

func TestJudge(t *testing.T) {
	t.Parallel()
	c := &control{test: "TestX/a", says: "law [12]"}
	failed := errors.New("exit status 1")
	said, err := c.judge("--- FAIL: TestX (1s)\n law 2: two\n", failed)
	require.NoError(t, err)
	require.Equal(t, "law 2: two", said)
	for name, out := range map[string]string{
		"did not run":  "[build failed] law 2",
		"did not say":  "--- FAIL: TestX (1s)\n time is up",
		"no such test": "ok [no tests to run]",
	} {
		_, err := c.judge(out, failed)
		require.Error(t, err, name)
	}
	_, err = c.judge("ok", nil)
	require.ErrorContains(t, err, "the test passed")
}
