package main

import "time"

// moment is how far the filter was at one time: what its group had committed, by
// raw partition.
type moment struct {
	at   time.Time
	done counts
}

// timeline is a row of moments in order of time, never empty where it is asked.
type timeline []moment

// span is a stretch of a timeline.
type span struct{ from, to time.Time }

// at is the last moment that is not after when, or the first of all.
func (t timeline) at(when time.Time) moment {
	last := t[0]
	for _, m := range t[1:] {
		if m.at.After(when) {
			break
		}
		last = m
	}
	return last
}

// rate is in messages a second, over all partitions; 0 where the span holds no
// time.
func (t timeline) rate(s span) float64 {
	first, last := t.at(s.from), t.at(s.to)
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.done.sum()-first.done.sum()) / took
}

// pause is the longest time in which a count did not grow, of those that reach
// into the span: from its own beginning, which may lie before the span's, and at
// most up to the span's end, behind which something else is done to the filter.
// It is exact to the time between two moments.
func (t timeline) pause(s span, of func(counts) int64) (longest time.Duration) {
	grew := t[0]
	for i, m := range t {
		if of(m.done) == of(grew.done) && i < len(t)-1 {
			continue
		}
		if m.at.After(s.from) && grew.at.Before(s.to) {
			longest = max(longest, earlier(m.at, s.to).Sub(grew.at))
		}
		grew = m
	}
	return longest
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// grown is how long after when a count was seen to have grown; false: it was not.
func (t timeline) grown(when time.Time, of func(counts) int64) (time.Duration, bool) {
	before := of(t.at(when).done)
	for _, m := range t {
		if of(m.done) > before {
			return m.at.Sub(when), true
		}
	}
	return 0, false
}

// total counts over all partitions, ofPartition in one.
func total(c counts) int64 { return c.sum() }

func ofPartition(partition int32) func(counts) int64 {
	return func(c counts) int64 { return c[partition] }
}

// eachPause is the longest pause of any of the flows' partitions.
func (t timeline) eachPause(s span, flows []flow) (longest time.Duration) {
	for _, f := range flows {
		longest = max(longest, t.pause(s, ofPartition(f.partition)))
	}
	return longest
}

// eachGrown is when the last of the flows' partitions had grown; false: one has
// not.
func (t timeline) eachGrown(when time.Time, flows []flow) (last time.Duration, ok bool) {
	for _, f := range flows {
		took, ok := t.grown(when, ofPartition(f.partition))
		if !ok {
			return 0, false
		}
		last = max(last, took)
	}
	return last, true
}
