package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has taken so far.
type usage struct {
	cpu  time.Duration // user and system, of all its threads
	rss  int64         // bytes now
	peak int64         // bytes at most so far
}

// tick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on every
// Linux whatever the kernel's own is (proc_pid_stat(5), time(7)).
const tick = time.Second / 100

// usageOf reads /proc; elsewhere than on Linux it is an error.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("reading what the process takes: %w", err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, fmt.Errorf("reading what the process takes: %w", err)
	}
	cpu, err := parseStat(stat)
	if err != nil {
		return usage{}, err
	}
	u := usage{cpu: cpu}
	if u.rss, err = parseStatus(string(status), "VmRSS"); err != nil {
		return usage{}, err
	}
	u.peak, err = parseStatus(string(status), "VmHWM")
	return u, err
}

// parseStat adds utime and stime, fields 14 and 15; the name, field 2, may hold
// blanks and parentheses.
func parseStat(b []byte) (time.Duration, error) {
	rest := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(rest) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields behind the name", len(rest))
	}
	var ticks int64
	for _, field := range rest[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading /proc/PID/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// parseStatus reads a line "VmHWM:   12345 kB".
func parseStatus(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s of /proc/PID/status: %w", name, err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("/proc/PID/status has no %s", name)
}
