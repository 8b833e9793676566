package devservices

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChild(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	c, err := StartChild("/bin/sh", []string{"-c", `echo "$WHO"; exit 3`}, []string{"WHO=me"}, log)
	require.NoError(t, err)
	<-c.Done()
	require.Equal(t, 3, c.ExitCode())
	require.Equal(t, "me", c.Log())
	require.NoError(t, c.Stop(t.Context()), "ending what has ended is no error")

	c, err = StartChild("/bin/sh", []string{"-c", "sleep 1000; true"}, nil, log)
	require.NoError(t, err)
	require.NoError(t, c.Pause())
	require.NoError(t, c.Kill(), "also a frozen one, with its children")
	<-c.Done()
	require.Equal(t, -1, c.ExitCode())
}
