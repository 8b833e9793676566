package demo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tempDir is where the demo makes its folder; PostgreSQL's user must get there.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o711))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	t.Setenv("TMPDIR", dir)
	return dir
}

func TestInterrupted(t *testing.T) {
	dir := tempDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	err := Run(ctx, Options{Program: "none", Out: &out, Exit: true, Progress: func(string) { cancel() }})
	require.ErrorIs(t, err, errInterrupted, "no success where nothing was shown")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFilterThatEnds(t *testing.T) {
	dir := tempDir(t)
	program := filepath.Join(t.TempDir(), "filter")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho called with $*\nexit 3\n"), 0o755))
	var out strings.Builder
	err := Run(t.Context(), Options{Program: program, Out: &out, Exit: true})
	require.ErrorContains(t, err, "ended with exit code 3\nend of the filter's log:\ncalled with run -c "+dir)
	require.NotContains(t, out.String(), "1. What it does")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
