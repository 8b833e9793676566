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
	byKind := map[string][]time.Duration{}
	count := map[string]int{}
	for _, f := range c.done {
		count[f.kind]++
		if f.recovered >= 0 && f.alone {
			byKind[f.kind] = append(byKind[f.kind], f.recovered)
		}
	}
	c.mu.Unlock()
	fmt.Fprintf(c.out, "\nseed %d, %s of faults, Redis %s\n\n", c.o.seed, c.o.lasts, c.redisName())
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tcount\talone\tgoes on after, median\tmax\twhat")
	total := 0
	for _, name := range slices.Sorted(maps.Keys(count)) {
		k, _ := kindNamed(name)
		total += count[name]
		all := byKind[name]
		slices.Sort(all)
		mid, most := "-", "-"
		if len(all) > 0 {
			mid, most = rounded(all[len(all)/2]), rounded(all[len(all)-1])
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n", name, count[name], len(all), mid, most, k.what)
	}
	fmt.Fprintf(w, "all\t%d\t\t\t\t\n", total)
	_ = w.Flush()
	rss, files, lived := c.meter.most()
	c.crew.mu.Lock()
	starts, ended := c.crew.starts, c.crew.ended
	c.crew.mu.Unlock()
	fmt.Fprintf(c.out, "\nfilters: %d starts, %d ended by themselves and were started again; at most %d MB and %d files open; the longest lived %d s\n",
		starts, len(ended), rss>>20, files, lived)
	for _, why := range ended {
		fmt.Fprintf(c.out, "  %s\n", why)
	}
	if v == nil {
		fmt.Fprintln(c.out, "not judged")
		return
	}
	fmt.Fprintf(c.out, "raw records %d, %d of them in recorded gaps (and %d in transactions that were aborted or perhaps so)\n", v.records, v.gone, c.traffic.aborted)
	fmt.Fprintf(c.out, "NEW %d, SEEN %d, DRIFT %d, INVALID %d\n", v.byStatus["NEW"], v.byStatus["SEEN"], v.byStatus["DRIFT"], v.byStatus["INVALID"])
	fmt.Fprintf(c.out, "lost %d, doubled %d, wrong %d; transactions left open %d\n", v.lost, v.doubled, v.wrong, v.open)
	fmt.Fprintf(c.out, "PostgreSQL lost commits %d times: doubled across raw partitions %d, witnesses in Redis %d, rows that live at once %d, ranges without an output %d\n",
		c.losses, v.across, v.witnesses, v.overlapping, v.gaps)
}

func rounded(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
