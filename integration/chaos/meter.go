package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// meter looks at the memory and the file descriptors of the filters.
type meter struct {
	crew *crew

	mu      sync.Mutex
	samples map[int][]sample // by process id
}

type sample struct{ rss, files int }

func newMeter(c *crew) *meter { return &meter{crew: c, samples: map[int][]sample{}} }

func (m *meter) run(ctx context.Context) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		m.crew.mu.Lock()
		var pids []int
		for _, f := range m.crew.filters {
			if f != nil {
				pids = append(pids, f.child.PID())
			}
		}
		m.crew.mu.Unlock()
		m.mu.Lock()
		for _, pid := range pids {
			if s, ok := look(pid); ok {
				m.samples[pid] = append(m.samples[pid], s)
			}
		}
		m.mu.Unlock()
	}
}

// look reads /proc; a process that has just ended has no sample.
func look(pid int) (s sample, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, false
	}
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte("VmRSS:")); found {
			n, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
			if err != nil {
				return s, false
			}
			s.rss = n << 10
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil || s.rss == 0 {
		return s, false
	}
	s.files = len(files)
	return s, true
}

const (
	// mostMemory a filter may have, whatever happens.
	mostMemory = 300 << 20
	mostFiles  = 150
	// warmUp of a process is not compared, longLived is one that is.
	warmUp    = 20
	longLived = 80
)

// faults are filters whose memory or files grew, or were too many.
func (m *meter) faults() (faults []error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for pid, all := range m.samples {
		rss, files := most(all)
		if rss > mostMemory {
			faults = append(faults, fmt.Errorf("memory: filter %d had %d MB", pid, rss>>20))
		}
		if files > mostFiles {
			faults = append(faults, fmt.Errorf("files: filter %d had %d open", pid, files))
		}
		if len(all) < longLived {
			continue
		}
		third := (len(all) - warmUp) / 3
		early, late := median(all[warmUp:warmUp+third]), median(all[len(all)-third:])
		if late.rss > early.rss*3/2+(32<<20) {
			faults = append(faults, fmt.Errorf("memory: filter %d grew from %d to %d MB in %d s", pid, early.rss>>20, late.rss>>20, len(all)))
		}
		if late.files > early.files*3/2+10 {
			faults = append(faults, fmt.Errorf("files: filter %d grew from %d to %d in %d s", pid, early.files, late.files, len(all)))
		}
	}
	return faults
}

// most of all filters together.
func (m *meter) most() (rss, files, lived, compared int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, all := range m.samples {
		r, f := most(all)
		rss, files, lived = max(rss, r), max(files, f), max(lived, len(all))
		if len(all) >= longLived {
			compared++
		}
	}
	return rss, files, lived, compared
}

func most(all []sample) (rss, files int) {
	for _, s := range all {
		rss, files = max(rss, s.rss), max(files, s.files)
	}
	return rss, files
}

func median(all []sample) sample {
	var rss, files []int
	for _, s := range all {
		rss, files = append(rss, s.rss), append(files, s.files)
	}
	slices.Sort(rss)
	slices.Sort(files)
	return sample{rss[len(rss)/2], files[len(files)/2]}
}
