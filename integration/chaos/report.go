package main

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// report prints the table of a campaign; v is nil where nothing could be judged.
func (c *campaign) report(v *verdict) {
	c.mu.Lock()
	byKind, raw, silent := map[string][]time.Duration{}, map[string][]time.Duration{}, map[string][]time.Duration{}
	count := map[string]int{}
	for _, f := range c.done {
		count[f.kind]++
		if f.alone {
			silent[f.kind] = append(silent[f.kind], f.silent)
		}
		if f.recovered >= 0 && f.alone {
			byKind[f.kind], raw[f.kind] = append(byKind[f.kind], f.recovered), append(raw[f.kind], f.raw)
		}
	}
	c.mu.Unlock()
	slots := "taken from what is free"
	if c.o.fixedSlots() {
		slots = "fixed"
	}
	fmt.Fprintf(c.out, "\nseed %d, %s of faults, %d raw records a second, Redis %s, slots %s\n\n", c.o.seed, c.o.lasts, c.o.rate, c.redisName(), slots)
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tcount\talone\tall partitions go on after, median\tmax\traw itself after\tmax\tno output for, median\tmax\twhat")
	total := 0
	for _, name := range slices.Sorted(maps.Keys(count)) {
		k, _ := kindNamed(name)
		total += count[name]
		mid, most := middle(byKind[name])
		rawMid, rawMost := middle(raw[name])
		quiet, longest := middle(silent[name])
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, count[name], len(byKind[name]), mid, most, rawMid, rawMost, quiet, longest, k.what)
	}
	fmt.Fprintf(w, "all\t%d\t\t\t\t\t\t\t\t\n", total)
	_ = w.Flush()
	rss, files, lived, compared := c.meter.most()
	c.crew.mu.Lock()
	starts, ended := c.crew.starts, c.crew.ended
	c.crew.mu.Unlock()
	fmt.Fprintf(c.out, "\nfilters: %d starts, %d ended by themselves and were started again; at most %d MB and %d files open; the longest lived %d s, %d long enough to see whether memory and files grow fast\n",
		starts, len(ended), rss>>20, files, lived, compared)
	for _, why := range ended {
		fmt.Fprintf(c.out, "  %s\n", why)
	}
	c.meter.tell(c.out)
	if v == nil {
		fmt.Fprintln(c.out, "not judged")
		return
	}
	fmt.Fprintf(c.out, "raw records %d, %d of them in recorded gaps, %d destroyed with their log before anything was decided (and %d more in transactions that were aborted or perhaps so)\n",
		v.records, v.gone, v.unread, c.traffic.aborted)
	fmt.Fprintf(c.out, "NEW %d, SEEN %d, DRIFT %d, INVALID %d\n", v.byStatus["NEW"], v.byStatus["SEEN"], v.byStatus["DRIFT"], v.byStatus["INVALID"])
	fmt.Fprintf(c.out, "lost %d, doubled %d, wrong %d; transactions left open %d\n", v.lost, v.doubled, v.wrong, v.open)
	fmt.Fprintf(c.out, "PostgreSQL lost commits %d times: doubled across raw partitions %d, witnesses in Redis %d, rows that live at once %d, ranges without an output %d\n",
		c.losses, v.across, v.witnesses, v.overlapping, v.gaps)
}

// middle are the median and the maximum.
func middle(all []time.Duration) (median, most string) {
	if len(all) == 0 {
		return "-", "-"
	}
	slices.Sort(all)
	return rounded(all[len(all)/2]), rounded(all[len(all)-1])
}

func rounded(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
