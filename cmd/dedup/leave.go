package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// tellToLeave sends SIGUSR1 to a filter. It ends any process that does not
// expect it, so it goes to this very program only, where the system can tell.
func tellToLeave(pid int) error {
	if pid < 1 {
		return fmt.Errorf("--leave %d: write the process id of a running `dedup run`", pid)
	}
	ours, err := programOf(os.Getpid())
	theirs, theirErr := programOf(pid)
	switch {
	case err != nil: // a system without /proc
	case errors.Is(theirErr, os.ErrNotExist):
		return fmt.Errorf("--leave %d: there is no such process", pid)
	case theirErr != nil:
		return fmt.Errorf("--leave %d: looking at the process: %w", pid, theirErr)
	case ours != theirs:
		return fmt.Errorf("--leave %d: that process is %s, not %s", pid, theirs, ours)
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		return fmt.Errorf("--leave %d: sending SIGUSR1: %w", pid, err)
	}
	return nil
}

func programOf(pid int) (string, error) {
	return os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")) //nolint:wrapcheck // the caller says what for
}
