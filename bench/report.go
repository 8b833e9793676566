package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

const (
	titleFilter = "filter"
	titleTLS    = "filter over TLS"
	titleCopy   = "copy"
	titleInsert = "insert, 1 connection"
	titleLearn  = "learn"
	titleOutage = "outage"
)

func titleRegister(connections int) string {
	if connections == 1 {
		return "register, 1 connection"
	}
	return "register, " + strconv.Itoa(connections) + " connections"
}

// run is one repetition: figures by the phase's title.
type run map[string]figures

// report is what is printed; with -o json as it is.
type report struct {
	surroundings
	Messages int64  `json:"messages"`
	Resends  int64  `json:"resends"`
	Sessions int    `json:"sessions"`
	Outage   string `json:"outage,omitempty"` // what the phase of that name does
	Runs     []run  `json:"runs"`
	Rows     []line `json:"rows"`
}

// line is one figure over all repetitions.
type line struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	Median float64   `json:"median"`
	Goal   string    `json:"goal,omitempty"`
	Met    *bool     `json:"met,omitempty"`

	decimals int
}

func newReport(o *options, s surroundings) *report {
	r := &report{surroundings: s, Messages: o.messages, Resends: resends(o.messages), Sessions: o.sessions}
	if slices.Contains(o.only, titleOutage) {
		r.Outage = fmt.Sprintf("%d partitions with a backlog, %d messages a second more all along; stretches of %d messages; PostgreSQL away for %s; pauses ± %s",
			scopes, o.rate, o.messages/backlogParts, o.away, outageEvery)
	}
	return r
}

// goal is what the median is held against.
type goal struct {
	limit  float64
	atMost bool
}

func (g goal) text() string {
	if g.atMost {
		return "≤ " + strconv.FormatFloat(g.limit, 'f', -1, 64)
	}
	return "≥ " + strconv.FormatFloat(g.limit, 'f', -1, 64)
}

func (g goal) met(v float64) bool { return v >= g.limit && !g.atMost || v <= g.limit && g.atMost }

// add makes a row of what each run that has the figure gives.
func (r *report) add(name string, decimals int, of func(run) (float64, bool), goals ...goal) {
	l := line{Name: name, decimals: decimals}
	for _, run := range r.Runs {
		if v, ok := of(run); ok {
			l.Values = append(l.Values, v)
		}
	}
	if len(l.Values) == 0 {
		return
	}
	l.Median = median(l.Values)
	for _, g := range goals {
		met := g.met(l.Median)
		l.Goal, l.Met = g.text(), &met
	}
	r.Rows = append(r.Rows, l)
}

func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// speed, cpu and peak pick a figure of a phase; ratio divides two speeds.
func speed(title string) func(run) (float64, bool) {
	return func(r run) (float64, bool) { f, ok := r[title]; return f.PerSecond, ok }
}

func cpu(title string) func(run) (float64, bool) {
	return func(r run) (float64, bool) { f, ok := r[title]; return f.CPU, ok }
}

func peak(title string) func(run) (float64, bool) {
	return func(r run) (float64, bool) { f, ok := r[title]; return f.Peak, ok }
}

func ratio(a, b string) func(run) (float64, bool) {
	return func(r run) (float64, bool) {
		x, y := r[a], r[b]
		return x.PerSecond / max(y.PerSecond, 1), x.PerSecond > 0 && y.PerSecond > 0
	}
}

// growth is the memory at the end against that at the first quarter.
func growth(title string) func(run) (float64, bool) {
	return func(r run) (float64, bool) {
		m := r[title].Resident
		if len(m) < 4 || m[0] == 0 {
			return 0, false
		}
		return m[3] / m[0], true
	}
}

// tabulate makes the rows; the goals are those of the issue, for two cores with
// the services on the same machine.
func (r *report) tabulate() {
	one, many := titleRegister(1), titleRegister(r.Sessions)
	r.add("filter, msg/s", 0, speed(titleFilter), goal{limit: 20_000})
	r.add("filter, µs CPU/msg", 1, cpu(titleFilter), goal{limit: 20, atMost: true})
	r.add("filter, MB RSS at most", 0, peak(titleFilter), goal{limit: 200, atMost: true})
	r.add("filter over TLS, msg/s", 0, speed(titleTLS))
	r.add("filter over TLS, µs CPU/msg", 1, cpu(titleTLS))
	r.add("filter, RSS at 100 % / at 25 %", 2, growth(titleFilter))
	r.add("copy, msg/s", 0, speed(titleCopy))
	r.add("copy, µs CPU/msg", 1, cpu(titleCopy))
	r.add("copy, MB RSS at most", 0, peak(titleCopy))
	r.add(one+", msg/s", 0, speed(one))
	if many != one {
		r.add(many+", msg/s", 0, speed(many))
	}
	r.add(titleInsert+", msg/s", 0, speed(titleInsert))
	r.add("learn from the outputs, msg/s", 0, speed(titleLearn), goal{limit: 10_000})
	r.add("learn, MB RSS at most", 0, peak(titleLearn), goal{limit: 300, atMost: true})
	// Held against one connection, as the registration is against the insert:
	// on as many as the filter has, it takes all of a small machine for itself.
	r.add("filter / "+one, 2, ratio(titleFilter, one), goal{limit: 0.5})
	if many != one {
		r.add("filter / "+many, 2, ratio(titleFilter, many))
	}
	r.add("register / insert, 1 connection", 2, ratio(one, titleInsert), goal{limit: 0.5})
	r.add("filter over TLS / filter", 2, ratio(titleTLS, titleFilter), goal{limit: 0.75})
	r.add("filter / copy", 2, ratio(titleFilter, titleCopy))
	r.addOutage()
}

func (r *report) print(w io.Writer, format string) error {
	r.tabulate()
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	r.printText(w)
	return nil
}

func (r *report) printText(w io.Writer) {
	fmt.Fprintf(w, "%s\npostgres: %s\nmachine: %s; %s\n", r.Services, r.Postgres, r.Machine, disturbed)
	fmt.Fprintf(w, "input: %d messages of %d B (EDIFACT), %.1f %% resends, %d partitions, %d scopes; %d sessions\n\n",
		r.Messages, valueSize, 100*float64(r.Resends)/float64(r.Messages), partitions, scopes, r.Sessions)
	if r.Outage != "" {
		fmt.Fprintf(w, "outage: %s\n\n", r.Outage)
	}
	for _, l := range r.Rows {
		fmt.Fprintf(w, "%-33s", l.Name)
		for _, v := range l.Values {
			fmt.Fprintf(w, "%9.*f", l.decimals, v)
		}
		fmt.Fprintf(w, "   median %9.*f  %s\n", l.decimals, l.Median, l.verdict())
	}
	for i, run := range r.Runs {
		if f, ok := run[titleFilter]; ok {
			fmt.Fprintf(w, "filter, run %d: MB RSS at 25/50/75/100 %%: %s\n", i+1, f.resident())
		}
	}
}

func (l line) verdict() string {
	switch {
	case l.Met == nil:
		return ""
	case *l.Met:
		return l.Goal + " met"
	default:
		return l.Goal + " MISSED"
	}
}
