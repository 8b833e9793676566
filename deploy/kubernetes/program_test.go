package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is the path of the built program. TestMain sets it before the first
// test and no test changes it: Go gives TestMain no other way to hand it over.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dedup-kubernetes-")
	if err == nil {
		program = filepath.Join(dir, "dedup")
		var out []byte
		out, err = exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-o", program, "../../cmd/dedup").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("building the program: %w\n%s", err, out)
		}
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// help asks the program for the help of a call, which it gives only if it knows
// the command and each flag.
func help(t *testing.T, args []string) (string, error) {
	t.Helper()
	require.NotEmpty(t, args)
	out, err := exec.CommandContext(t.Context(), program, append(slices.Clip(args), "--help")...).CombinedOutput()
	command := "dedup"
	for _, word := range args {
		if !regexp.MustCompile(`^[a-z]+$`).MatchString(word) {
			break
		}
		command += " " + word
	}
	if err == nil && !strings.Contains(string(out), command+" ") {
		err = errors.New("no such command: " + command) // of one it does not know the program shows the help of its parent
	}
	return string(out), err
}
