package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Whether the memory, the files and the goroutines of a filter stay flat shows only
// in a process that lives on while the services fail around it. So where there is
// time for it a campaign spares one filter: nothing ends it, everything else hits it.

const (
	// flatFrom is the life that is judged by quarters, and the least that a filter
	// is spared for. In a shorter one a quarter holds three faults or fewer, and the
	// medians tell of those and not of a trend.
	flatFrom = 5 * time.Minute
	// goroutinesEvery: they are asked for by HTTP.
	goroutinesEvery = 5 * time.Second
)

// life is what was seen of one process.
type life struct {
	way     int
	spared  bool // for a while at least
	samples []sample
}

// sample of a process. goroutines is 0 where they were not asked for.
type sample struct {
	at                     time.Time
	rss, files, goroutines int
}

func (l *life) lasted() time.Duration {
	if len(l.samples) == 0 {
		return 0
	}
	return l.samples[len(l.samples)-1].at.Sub(l.samples[0].at)
}

// trend is one figure of a life: its medians in the second and in the last quarter,
// and the most that the latter may be. The first quarter is warm-up.
type trend struct {
	what              string
	early, late, most int
}

// flat: the figure did not grow, as far as its noise lets it be seen.
func (t trend) flat() bool { return t.late <= t.most }

// trends of a life.
//
// A quarter's median is deaf to what a single fault does, the backlog of an outage
// or the connections of a rebalance, but not to a step or a slope that stays. What
// it may differ by:
//
//   - memory, a quarter and 16 MB: Go collects when the heap is twice what lives
//     (GOGC 100) and gives pages back over minutes, so the resident size wanders
//     with the batches of that quarter, up and down.
//   - files, 12: a client of Kafka has up to five connections to each broker, by the
//     kind of request, and closes them when they idle; so many of one broker of three
//     and of PostgreSQL's pool may be open in the median of one quarter and not in
//     that of the other. One that is lost with every rebuilt session is more.
//   - goroutines, a quarter and 24: two or three for each such connection.
func (l *life) trends() (all []trend) {
	at := func(quarter int) time.Time { return l.samples[0].at.Add(l.lasted() * time.Duration(quarter) / 4) }
	var second, last []sample
	for _, s := range l.samples {
		switch {
		case !s.at.Before(at(3)):
			last = append(last, s)
		case !s.at.Before(at(1)) && s.at.Before(at(2)):
			second = append(second, s)
		}
	}
	for _, f := range []struct {
		what  string
		of    func(sample) int
		bound func(early int) int
	}{
		{"MB of memory", func(s sample) int { return s.rss >> 20 }, func(n int) int { return n + n/4 + 16 }},
		{"open files", func(s sample) int { return s.files }, func(n int) int { return n + 12 }},
		{"goroutines", func(s sample) int { return s.goroutines }, func(n int) int { return n + n/4 + 24 }},
	} {
		early, some := medianOf(second, f.of)
		late, others := medianOf(last, f.of)
		if some && others {
			all = append(all, trend{f.what, early, late, f.bound(early)})
		}
	}
	return all
}

// medianOf a figure, where it is known; false: nowhere.
func medianOf(all []sample, of func(sample) int) (int, bool) {
	var known []int
	for _, s := range all {
		if n := of(s); n > 0 {
			known = append(known, n)
		}
	}
	if len(known) == 0 {
		return 0, false
	}
	slices.Sort(known)
	return known[len(known)/2], true
}

// grown are the lives long enough that were not flat; and the spared filter must
// have had such a life, or nothing was seen.
func grown(lives []*life) (faults []error) {
	spared, longest := false, time.Duration(0)
	for _, l := range lives {
		if l.spared {
			spared, longest = true, max(longest, l.lasted())
		}
		if l.lasted() < flatFrom {
			continue
		}
		trends := l.trends()
		if len(trends) < 3 {
			faults = append(faults, fmt.Errorf("filter by way %d: of memory, files and goroutines only %d were seen over its life of %s", l.way, len(trends), l.lasted().Round(time.Second)))
		}
		for _, t := range trends {
			if !t.flat() {
				faults = append(faults, fmt.Errorf("filter by way %d: %s grew from %d to %d in a life of %s; flat is up to %d", l.way, t.what, t.early, t.late, l.lasted().Round(time.Second), t.most))
			}
		}
	}
	if spared && longest < flatFrom {
		faults = append(faults, fmt.Errorf("the spared filter lived for %s at a time only, %s are judged: see why it ended", longest.Round(time.Second), flatFrom))
	}
	return faults
}

// tellLives prints the figures of the lives that were judged.
func tellLives(out io.Writer, lives []*life) {
	var judged []*life
	for _, l := range lives {
		if l.lasted() >= flatFrom {
			judged = append(judged, l)
		}
	}
	if len(judged) == 0 {
		fmt.Fprintf(out, "no filter lived for %s: its memory and files were held against the ceilings of %d MB and %d alone\n", flatFrom, mostMemory>>20, mostFiles)
		return
	}
	fmt.Fprintf(out, "filters that lived for %s or longer, medians of the second and of the last quarter:\n", flatFrom)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range judged {
		name := fmt.Sprintf("  by way %d", l.way)
		if l.spared {
			name += ", spared"
		}
		fmt.Fprintf(w, "%s\tlived %s", name, l.lasted().Round(time.Second))
		for _, t := range l.trends() {
			fmt.Fprintf(w, "\t%s %d → %d (flat: ≤ %d)", t.what, t.early, t.late, t.most)
		}
		rss, files := most(l.samples)
		fmt.Fprintf(w, "\tat most %d MB, %d files\n", rss>>20, files)
	}
	_ = w.Flush()
}
