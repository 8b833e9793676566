package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// meter looks at the memory, the file descriptors and the goroutines of the filters.
type meter struct {
	crew *crew

	mu    sync.Mutex
	lives map[int]*life // by process id
}

func newMeter(c *crew) *meter { return &meter{crew: c, lives: map[int]*life{}} }

func (m *meter) run(ctx context.Context) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	var asked time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		ask := time.Since(asked) >= goroutinesEvery
		if ask {
			asked = time.Now()
		}
		for _, f := range m.crew.all() {
			s, ok := look(f.child.PID())
			if !ok {
				continue
			}
			if ask {
				s.goroutines = goroutines(ctx, f.at)
			}
			m.add(f, m.crew.isSpared(f.way), s)
		}
	}
}

func (m *meter) add(f *filter, spared bool, s sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lives[f.child.PID()]
	if l == nil {
		l = &life{way: f.way}
		m.lives[f.child.PID()] = l
	}
	l.spared = l.spared || spared
	l.samples = append(l.samples, s)
}

// goroutines of a filter; 0 where it does not answer, as when it is frozen.
func goroutines(ctx context.Context, at string) int {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	text, err := ask(ctx, at, "/metrics")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, "go_goroutines "); found {
			n, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64) // 0: not known
			return int(n)
		}
	}
	return 0
}

// look reads /proc; a process that has just ended has no sample.
func look(pid int) (s sample, ok bool) {
	s.at = time.Now()
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
	// warmUp of a process is not compared; in one that is longLived, and no more,
	// what grows fast is seen. The others are judged by quarters (flat.go).
	warmUp    = 20
	longLived = 80
)

// faults are filters whose memory or files grew, or were too many.
func (m *meter) faults() (faults []error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for pid, l := range m.lives {
		all := l.samples
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
	return append(faults, grown(m.sorted())...)
}

// sorted are the lives, the longest first.
func (m *meter) sorted() []*life {
	return slices.SortedFunc(maps.Values(m.lives), func(a, b *life) int { return cmp.Compare(b.lasted(), a.lasted()) })
}

// tell prints what was judged by quarters.
func (m *meter) tell(out io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tellLives(out, m.sorted())
}

// most of all filters together.
func (m *meter) most() (rss, files, lived, compared int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lives {
		r, f := most(l.samples)
		rss, files, lived = max(rss, r), max(files, f), max(lived, len(l.samples))
		if len(l.samples) >= longLived {
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
	rss, _ := medianOf(all, func(s sample) int { return s.rss })
	files, _ := medianOf(all, func(s sample) int { return s.files })
	return sample{rss: rss, files: files}
}
