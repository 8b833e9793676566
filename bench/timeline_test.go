package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// second makes a span or a time of seconds.
func second(n float64) time.Time { return time.Unix(0, int64(n*1e9)) }

func seconds(from, to float64) span { return span{second(from), second(to)} }

// lineOf makes moments of triples: second, partition 0, partition 1.
func lineOf(values ...[3]float64) (t timeline) {
	for _, v := range values {
		t = append(t, moment{second(v[0]), counts{int64(v[1]), int64(v[2])}})
	}
	return t
}

func TestRateOfASpan(t *testing.T) {
	t.Parallel()
	l := lineOf([3]float64{0, 0, 0}, [3]float64{1, 10, 10}, [3]float64{2, 10, 50}, [3]float64{4, 100, 60})
	require.InDelta(t, 40, l.rate(seconds(0, 4)), 1e-9)
	require.InDelta(t, 40, l.rate(seconds(1, 2)), 1e-9)
	require.InDelta(t, 40, l.rate(seconds(1.9, 2.9)), 1e-9, "of the moments before both ends")
	require.InDelta(t, 20, l.rate(seconds(-1, 1)), 1e-9, "not before the first moment")
	require.Zero(t, l.rate(seconds(2, 2)))
	require.Zero(t, l.rate(seconds(9, 9.5)))
}

func TestLongestPause(t *testing.T) {
	t.Parallel()
	l := lineOf(
		[3]float64{0, 0, 0}, [3]float64{1, 5, 0}, // partition 1 stands until 6
		[3]float64{2, 5, 0}, [3]float64{3, 5, 0}, // all stand from 1 to 4
		[3]float64{4, 9, 0}, [3]float64{5, 10, 0}, [3]float64{6, 11, 1},
		[3]float64{7, 11, 1}, [3]float64{8, 11, 1}, // and from 6 to the end
	)
	for _, c := range []struct {
		span span
		want time.Duration
	}{
		{seconds(0, 8), 3 * time.Second},
		{seconds(2.5, 2.6), 1600 * time.Millisecond}, // a pause around the span is told up to its end
		{seconds(3, 5), 3 * time.Second},             // one that began before it
		{seconds(4, 6), time.Second},                 // one that ended as it begins is none of it
		{seconds(0, 1), time.Second},                 // nor is one that begins as it ends
		{seconds(7, 8), 2 * time.Second},             // one that has not ended is told so far
	} {
		require.Equal(t, c.want, l.pause(c.span, total), "%v", c.span)
	}
	flows := []flow{{partition: 0}, {partition: 1}}
	require.Equal(t, 5*time.Second, l.eachPause(seconds(4, 5), flows), "of the one that stands longest")
	require.Equal(t, time.Second, l.eachPause(seconds(4, 6), flows[:1]))
	require.Zero(t, l[:1].pause(seconds(0, 8), total), "one moment is no pause")
}

func TestGrownSince(t *testing.T) {
	t.Parallel()
	l := lineOf([3]float64{0, 1, 1}, [3]float64{1, 1, 1}, [3]float64{2, 2, 1}, [3]float64{4, 3, 1})
	took, ok := l.grown(second(0.5), total)
	require.True(t, ok)
	require.Equal(t, 1500*time.Millisecond, took)
	took, ok = l.grown(second(2), total)
	require.True(t, ok)
	require.Equal(t, 2*time.Second, took, "what was there already is not meant")
	_, ok = l.grown(second(4), total)
	require.False(t, ok)

	flows := []flow{{partition: 1}, {partition: 0}}
	_, ok = l.eachGrown(second(0.5), flows)
	require.False(t, ok, "partition 1 has not moved")
	l = append(l, moment{second(5), counts{3, 2}})
	took, ok = l.eachGrown(second(0.5), flows)
	require.True(t, ok)
	require.Equal(t, 4500*time.Millisecond, took)
}

// TestOutageFigures walks a filter through all stretches, each with a rate of its
// own.
func TestOutageFigures(t *testing.T) {
	t.Parallel()
	var l timeline
	var done counts
	step := func(until float64, perSecond int64) {
		for at := float64(len(l)); at <= until; at++ {
			l = append(l, moment{second(at), done})
			done[0] += perSecond / 2
			done[1] += perSecond / 2
		}
	}
	step(10, 100)
	step(20, 50)
	step(30, 100)
	step(40, 80)
	step(50, 60)
	step(60, 0)
	step(70, 120)
	step(80, 200)
	m := &outageSpans{
		normal: [4]span{seconds(1, 11), seconds(21, 31), seconds(41, 51), seconds(71, 81)},
		killed: seconds(11, 21), frozen: seconds(31, 41), back: second(58.5), caughtUp: seconds(62, 71),
	}
	f := outageOf(l, m, []flow{{partition: 0}, {partition: 1}})
	require.InDelta(t, 0.5, f.Killed.Ratio, 1e-9)
	require.InDelta(t, 1, f.Frozen.Ratio, 1e-9, "of 100 and 60")
	require.InDelta(t, 2*120/(60+200.), f.CaughtUp.Ratio, 1e-9)
	require.InDelta(t, 115, f.Normal.PerSecond, 1e-9)
	require.InDelta(t, 0.3, f.Normal.Ratio, 1e-9)
	require.InDelta(t, 3.5, f.First, 1e-9)
	require.InDelta(t, 3.5, f.Each, 1e-9)
	require.InDelta(t, 1, f.Killed.Pause, 1e-9)
	require.Contains(t, f.text(), "killed × 0.50, frozen × 1.00; PostgreSQL back 3.5 s, then × 0.92")
}

func TestDue(t *testing.T) {
	t.Parallel()
	require.Zero(t, due(2000, 0))
	require.Equal(t, int64(500), due(2000, 250*time.Millisecond))
	require.Equal(t, int64(120_000), due(2000, time.Minute))
}
