package main

import (
	"fmt"
	"time"
)

// outageSpans are when what happened. caughtUp begins with the first commit
// after PostgreSQL is back.
type outageSpans struct {
	normal                   [4]span
	killed, frozen, caughtUp span
	back                     time.Time // PostgreSQL answers
}

// stretchFigures are of one stretch, or of all of a kind.
type stretchFigures struct {
	PerSecond float64 `json:"messages_per_second"`
	// Ratio is to the mean of the normal stretches before and behind; of these
	// themselves it is the slowest against the fastest.
	Ratio     float64 `json:"ratio"`
	Pause     float64 `json:"longest_pause_seconds"`              // between two commits of the filter
	EachPause float64 `json:"longest_pause_of_partition_seconds"` // between two in one partition
}

// outageFigures are what one repetition of phase outage came to.
type outageFigures struct {
	Normal   stretchFigures `json:"normal"` // the mean rate, the longest pauses
	Killed   stretchFigures `json:"redis_killed"`
	Frozen   stretchFigures `json:"redis_frozen"`
	CaughtUp stretchFigures `json:"catching_up"`
	First    float64        `json:"seconds_from_postgres_to_first_commit"`
	Each     float64        `json:"seconds_from_postgres_to_commits_in_all_partitions"`
}

func outageOf(t timeline, m *outageSpans, flows []flow) *outageFigures {
	of := func(s span) stretchFigures {
		return stretchFigures{
			PerSecond: t.rate(s),
			Pause:     t.pause(s, total).Seconds(), EachPause: t.eachPause(s, flows).Seconds(),
		}
	}
	beside := func(s span, before int) stretchFigures {
		f := of(s)
		f.Ratio = 2 * f.PerSecond / max(t.rate(m.normal[before])+t.rate(m.normal[before+1]), 1)
		return f
	}
	f := &outageFigures{Normal: of(m.normal[0]), Killed: beside(m.killed, 0), Frozen: beside(m.frozen, 1), CaughtUp: beside(m.caughtUp, 2)}
	slowest, fastest, sum := f.Normal.PerSecond, f.Normal.PerSecond, f.Normal.PerSecond
	for _, s := range m.normal[1:] {
		x := of(s)
		slowest, fastest, sum = min(slowest, x.PerSecond), max(fastest, x.PerSecond), sum+x.PerSecond
		f.Normal.Pause, f.Normal.EachPause = max(f.Normal.Pause, x.Pause), max(f.Normal.EachPause, x.EachPause)
	}
	f.Normal.PerSecond, f.Normal.Ratio = sum/float64(len(m.normal)), slowest/max(fastest, 1)
	if took, ok := t.grown(m.back, total); ok {
		f.First = took.Seconds()
	}
	if took, ok := t.eachGrown(m.back, flows); ok {
		f.Each = took.Seconds()
	}
	return f
}

func (f *outageFigures) text() string {
	return fmt.Sprintf("Redis killed × %.2f, frozen × %.2f; PostgreSQL back %.1f s, then × %.2f", f.Killed.Ratio, f.Frozen.Ratio, f.First, f.CaughtUp.Ratio)
}

// addOutage makes the rows of phase outage.
func (r *report) addOutage() {
	of := func(pick func(*outageFigures) float64) func(run) (float64, bool) {
		return func(r run) (float64, bool) {
			f := r[titleOutage].Outage
			if f == nil {
				return 0, false
			}
			return pick(f), true
		}
	}
	share, second := goal{limit: 0.8}, goal{limit: 1, atMost: true}
	r.add("normal, msg/s", 0, of(func(f *outageFigures) float64 { return f.Normal.PerSecond }))
	r.add("normal, slowest / fastest", 2, of(func(f *outageFigures) float64 { return f.Normal.Ratio }))
	r.add("Redis killed, msg/s", 0, of(func(f *outageFigures) float64 { return f.Killed.PerSecond }))
	r.add("Redis frozen, msg/s", 0, of(func(f *outageFigures) float64 { return f.Frozen.PerSecond }))
	r.add("catching up, msg/s", 0, of(func(f *outageFigures) float64 { return f.CaughtUp.PerSecond }))
	r.add("Redis killed / normal", 2, of(func(f *outageFigures) float64 { return f.Killed.Ratio }), share)
	r.add("Redis frozen / normal", 2, of(func(f *outageFigures) float64 { return f.Frozen.Ratio }), share)
	r.add("catching up / normal", 2, of(func(f *outageFigures) float64 { return f.CaughtUp.Ratio }), share)
	r.add("longest pause, normal, s", 2, of(func(f *outageFigures) float64 { return f.Normal.Pause }))
	r.add("longest pause, Redis killed, s", 2, of(func(f *outageFigures) float64 { return f.Killed.Pause }), second)
	r.add("longest pause, Redis frozen, s", 2, of(func(f *outageFigures) float64 { return f.Frozen.Pause }), second)
	r.add("… of one partition, normal", 2, of(func(f *outageFigures) float64 { return f.Normal.EachPause }))
	r.add("… of one partition, killed", 2, of(func(f *outageFigures) float64 { return f.Killed.EachPause }))
	r.add("… of one partition, frozen", 2, of(func(f *outageFigures) float64 { return f.Frozen.EachPause }))
	r.add("PostgreSQL back, first commit, s", 2, of(func(f *outageFigures) float64 { return f.First }), goal{limit: 5, atMost: true})
	r.add("… in all partitions, s", 2, of(func(f *outageFigures) float64 { return f.Each }))
	r.add("outage, MB RSS at most", 0, peak(titleOutage), goal{limit: 300, atMost: true})
}
