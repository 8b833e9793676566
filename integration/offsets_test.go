package integration

import (
	"testing"
)

// reset is what another tool does to the group's offsets.
type reset struct {
	do func(*bundle, *testing.T)
	// told: after a kill in a batch a missing offset says nothing, for the
	// first transaction may never have been committed.
	told bool
}

var resets = map[string]reset{
	"to the start":       {func(b *bundle, t *testing.T) { b.setOffsets(t, func(int64) int64 { return 0 }) }, true},
	"to an offset":       {func(b *bundle, t *testing.T) { b.setOffsets(t, func(was int64) int64 { return was / 2 }) }, true},
	"beyond":             {func(b *bundle, t *testing.T) { b.setOffsets(t, func(was int64) int64 { return was + 3 }) }, true},
	"to the current one": {func(b *bundle, t *testing.T) { b.setOffsets(t, func(was int64) int64 { return was }) }, true},
	"deleted":            {func(b *bundle, t *testing.T) { b.deleteOffsets(t) }, false},
}

// TestResetAfterStop: an offset that another tool set is reported and never
// obeyed. The filter goes on behind its last committed output.
func TestResetAfterStop(t *testing.T) {
	t.Parallel()
	for name, r := range resets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, setup{Partitions: 2})
			f := b.start(t, 0)
			b.produce(t, b.everywhere("a", 20)...)
			b.awaitOutputs(t)
			f.term(t)
			b.goesOnBehind(t, r, true)
		})
	}
}

// goesOnBehind resets the group's offsets while nothing runs, sends resends of
// what was there and new messages, and requires that nothing is lost or doubled.
func (b *bundle) goesOnBehind(t *testing.T, r reset, told bool) {
	t.Helper()
	b.vacate(t)
	r.do(b, t)
	b.produce(t, append(b.everywhere("a", 25), b.everywhere("c", 5)...)...)
	f := b.start(t, 0)
	b.checkHandled(t)
	if told {
		// Each session that is assigned a partition before its first commit tells.
		f.awaitMetric(t, "dedup_foreign_offsets_total", nil, func(v float64) bool { return v >= float64(b.partitions) })
		f.awaitLog(t, "is not obeyed: going on behind the last committed output")
	}
	f.term(t)
	b.checkStopped(t)
}
