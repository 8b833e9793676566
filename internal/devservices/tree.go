package devservices

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// goneWithin bounds the wait for killed processes: they are the kernel's to end.
const goneWithin = 10 * time.Second

// stat is one line of the process table.
type stat struct {
	pid, parent int
	zombie      bool
}

func children(pid int) ([]int, error) {
	table, err := processTable()
	if err != nil {
		return nil, err
	}
	var kids []int
	for _, s := range table {
		if s.parent == pid && !s.zombie {
			kids = append(kids, s.pid)
		}
	}
	return kids, nil
}

// awaitGone returns when none of the processes runs. A descendant's new parent
// may be slow to collect it: a zombie counts as gone, it holds no port, no
// file and no shared memory.
func awaitGone(pids []int) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), goneWithin,
		fmt.Errorf("killed processes were still there after %s", goneWithin))
	defer cancel()
	return poll(ctx, func() (bool, error) {
		table, err := processTable()
		if err != nil {
			return false, err
		}
		for _, s := range table {
			for _, pid := range pids {
				if s.pid == pid && !s.zombie {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

func processTable() ([]stat, error) {
	if !onLinux {
		return psTable()
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var table []stat
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // ended meanwhile
		}
		if s, ok := parseStat(b); ok {
			table = append(table, s)
		}
	}
	return table, nil
}

// parseStat reads /proc/PID/stat (proc_pid_stat(5)): "pid (name) state ppid …",
// where the name may hold blanks and parentheses.
func parseStat(b []byte) (stat, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	rest := bytes.Fields(b[end+1:])
	if len(rest) < 2 {
		return stat{}, false
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	parent, err2 := strconv.Atoi(string(rest[1]))
	return stat{pid, parent, isEnded(rest[0])}, err1 == nil && err2 == nil
}

func psTable() ([]stat, error) {
	b, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("listing processes with ps: %w", err)
	}
	var table []stat
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) != 3 {
			continue
		}
		pid, err1 := strconv.Atoi(string(f[0]))
		parent, err2 := strconv.Atoi(string(f[1]))
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("reading ps: %w", err)
		}
		table = append(table, stat{pid, parent, isEnded(f[2])})
	}
	return table, nil
}

func isEnded(state []byte) bool {
	return state[0] == 'Z' || state[0] == 'X'
}

// pollEvery is the pause between two questions to a process that starts.
const pollEvery = 20 * time.Millisecond

// poll asks until the answer is true or an error. The context's cause is
// returned when it ends first.
func poll(ctx context.Context, ask func() (bool, error)) error {
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}
