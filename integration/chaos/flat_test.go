package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
)

// lived is a made-up life of a spared filter, a sample a second.
func lived(d time.Duration, of func(second int) sample) *life {
	l := &life{spared: true}
	began := time.Unix(0, 0)
	for n := range int(d/time.Second) + 1 {
		s := of(n)
		s.at = began.Add(time.Duration(n) * time.Second)
		l.samples = append(l.samples, s)
	}
	return l
}

// noisy is a life as a healthy filter has it under faults: it grows while it warms
// up, wanders by a fifth, and has more of all for 20 s of every minute.
func noisy(rng *rand.Rand, second int) sample {
	s := sample{rss: (60 + rng.IntN(12)) << 20, files: 38 + rng.IntN(8)}
	if second < 60 {
		s.rss /= 2
	}
	if second%60 < 20 {
		s.rss, s.files = s.rss*3, s.files+30
	}
	if second%5 == 0 {
		s.goroutines = 90 + rng.IntN(20)
	}
	return s
}

// TestFlat: a leak is found, of memory, files or goroutines, also one that is small
// beside the noise of its life; the noise itself is not, nor what shrinks.
func TestFlat(t *testing.T) {
	t.Parallel()
	const minutes15 = 15 * time.Minute
	leaks := func(add func(s *sample, second int)) *life {
		rng := rand.New(rand.NewPCG(1, 2))
		return lived(minutes15, func(n int) sample {
			s := noisy(rng, n)
			add(&s, n)
			return s
		})
	}
	for _, c := range []struct {
		name string
		of   *life
		says []string // of each fault
	}{
		{"flat", leaks(func(*sample, int) {}), nil},
		{"shrinks", leaks(func(s *sample, n int) { s.rss -= n << 14 }), nil},
		{"memory, 6 MB a minute", leaks(func(s *sample, n int) { s.rss += n * 6 << 20 / 60 }), []string{"MB of memory grew"}},
		{"two files a minute", leaks(func(s *sample, n int) { s.files += n / 30 }), []string{"open files grew"}},
		{"ten goroutines a minute", leaks(func(s *sample, n int) {
			if s.goroutines > 0 {
				s.goroutines += n / 6
			}
		}), []string{"goroutines grew"}},
		{"goroutines were never seen", leaks(func(s *sample, _ int) { s.goroutines = 0 }), []string{"only 2 were seen"}},
	} {
		faults := grown([]*life{c.of})
		require.Len(t, faults, len(c.says), c.name)
		for i, says := range c.says {
			require.ErrorContains(t, faults[i], says, c.name)
		}
	}
}

// TestNoiseIsFlat: whatever the noise, it is no leak.
func TestNoiseIsFlat(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		require.Empty(t, grown([]*life{lived(flatFrom, func(n int) sample { return noisy(rng, n) })}), "seed %d", seed)
	}
}

// TestMeterLooks at a process that runs, and at the goroutines that it tells.
func TestMeterLooks(t *testing.T) {
	t.Parallel()
	told := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "# TYPE go_goroutines gauge\ngo_goroutines 87\ngo_goroutines_other 3\n")
	}))
	defer told.Close()
	child, err := devservices.StartChildIn(os.Environ(), "sleep", []string{"600"}, filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { require.NoError(t, child.Kill()) }()
	c := &crew{}
	c.filters[1] = &filter{way: 1, child: child, at: told.Listener.Addr().String()}
	require.Equal(t, 1, c.spare())
	m := newMeter(c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var side sync.WaitGroup
	side.Go(func() { _ = m.run(ctx) })
	require.NoError(t, until(ctx, func() (bool, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.lives[child.PID()] != nil, nil
	}))
	cancel()
	side.Wait()
	l := m.lives[child.PID()]
	require.True(t, l.spared)
	require.Equal(t, 1, l.way)
	first := l.samples[0]
	require.Equal(t, 87, first.goroutines)
	require.Positive(t, first.rss)
	require.Positive(t, first.files)
}

// TestShortLives: what lived too short is not judged by quarters, and the table says
// so; but a spared filter must have lived long enough, in one piece.
func TestShortLives(t *testing.T) {
	t.Parallel()
	short := lived(flatFrom-time.Second, func(n int) sample { return sample{rss: n << 20, files: n, goroutines: n} })
	require.ErrorContains(t, grown([]*life{short})[0], "lived for 4m59s at a time only")
	short.spared = false
	require.Empty(t, grown([]*life{short}))
	var table bytes.Buffer
	tellLives(&table, []*life{short})
	require.Contains(t, table.String(), "no filter lived for 5m0s: its memory and files were held against the ceilings of 300 MB and 150 alone")
	table.Reset()
	tellLives(&table, []*life{lived(flatFrom, func(int) sample { return sample{rss: 60 << 20, files: 40, goroutines: 90} }), short})
	require.Contains(t, table.String(), "by way 0, spared  lived 5m0s  MB of memory 60 → 60 (flat: ≤ 91)  open files 40 → 40 (flat: ≤ 52)  goroutines 90 → 90 (flat: ≤ 136)  at most 60 MB, 40 files")
}

// TestSparedIsLeftAlone: the filter that has lived longest is spared, is never the
// victim, and a fault that would end it all the same is refused.
func TestSparedIsLeftAlone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := &campaign{crew: &crew{filters: [ways]*filter{{way: 0, began: now}, nil, {way: 2, began: now.Add(-time.Minute)}, {way: 3, began: now}}}}
	require.Equal(t, []int{0, 2, 3}, c.crew.victims())
	require.Equal(t, 2, c.crew.spare())
	rng := rand.New(rand.NewPCG(1, 2))
	var drawn []int
	for range 100 {
		drawn = append(drawn, c.anyVictim(rng))
	}
	slices.Sort(drawn)
	require.Equal(t, []int{0, 3}, slices.Compact(drawn))
	require.ErrorContains(t, c.crew.kill(2), "the filter by way 2 is spared")
	require.ErrorContains(t, c.crew.term(t.Context(), 2), "the filter by way 2 is spared")
	_, err := c.crew.take(2, false)
	require.NoError(t, err, "it may be frozen")
	c.crew.spareNone()
	_, err = c.crew.take(2, true)
	require.NoError(t, err)
}

// TestSparesAfter: from the start where no kind ends all filters, at half time where
// some do, never where too little time is left.
func TestSparesAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o      options
		after  time.Duration
		spares bool
	}{
		{options{lasts: 30 * time.Minute}, 15 * time.Minute, true},
		{options{lasts: 9 * time.Minute}, 0, false},
		{options{lasts: 5 * time.Minute, only: []string{"kill", "broker-kill"}}, 0, true},
		{options{lasts: 4 * time.Minute, only: []string{"broker-kill"}}, 0, false},
		{options{lasts: time.Hour, only: []string{"skip", "grow"}}, 0, false},
	} {
		after, spares := c.o.sparesAfter()
		require.Equal(t, c.spares, spares, c.o)
		if spares {
			require.Equal(t, c.after, after, c.o)
		}
	}
}
