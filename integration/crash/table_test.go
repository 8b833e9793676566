package crash

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// table counts the visits.
type table struct {
	mu      sync.Mutex
	counts  map[string]map[kind]int // by point
	combos  map[visit]int
	missed  map[string]int // by point: traps into which nobody fell
	endings map[string]int
	lives   int
}

func newTable() *table {
	return &table{counts: map[string]map[kind]int{}, combos: map[visit]int{}, missed: map[string]int{}, endings: map[string]int{}}
}

func (t *table) visited(tr *trap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !tr.sprung {
		t.missed[tr.point+", "+tr.kind.String()+", "+tr.shape]++
		return
	}
	if t.counts[tr.point] == nil {
		t.counts[tr.point] = map[kind]int{}
	}
	t.counts[tr.point][tr.kind]++
	t.combos[tr.visit]++
}

func (t *table) born() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lives++
}

// ended notes how a process ended by itself.
func (t *table) ended(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why := err.Error()
	if i := strings.LastIndex(why, ": "); i > 0 {
		why = why[i+2:]
	}
	t.endings[why]++
}

func (t *table) total() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.combos {
		n += c
	}
	return n
}

// unmet lists points, and what was to happen there, that were never visited.
func (t *table) unmet(all []visit) (what []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, v := range all {
		if name := v.point + ", " + v.kind.String(); t.counts[v.point][v.kind] == 0 && !slices.Contains(what, name) {
			what = append(what, name)
		}
	}
	return what
}

// write shows points × kinds. A dash is what cannot be: a call whose answer is
// back cannot fail any more, one that is not made has no answer to lose.
func (t *table) write(to io.Writer, all []visit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	can := map[string]map[kind]bool{}
	for _, v := range all {
		if can[v.point] == nil {
			can[v.point] = map[kind]bool{}
		}
		can[v.point][v.kind] = true
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "point\t"
	for _, k := range kinds {
		head += k.String() + "\t"
	}
	fmt.Fprintln(w, head)
	for _, point := range slices.Sorted(maps.Keys(can)) {
		line := point + "\t"
		for _, k := range kinds {
			if can[point][k] {
				line += fmt.Sprintf("%d\t", t.counts[point][k])
			} else {
				line += "-\t"
			}
		}
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
	for _, why := range slices.Sorted(maps.Keys(t.endings)) {
		fmt.Fprintf(to, "ended by itself, %d times: %s\n", t.endings[why], why)
	}
	for _, what := range slices.Sorted(maps.Keys(t.missed)) {
		fmt.Fprintf(to, "not met, %d times: %s\n", t.missed[what], what)
	}
}
