package processor

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Status is what /readyz tells of the filter at one moment.
type Status struct {
	Slot       int
	Sessions   int
	Joining    int      // sessions without an answer of the group yet
	Running    []string // raw partitions consumed, as topic/partition
	Waiting    []string // pending or learning
	Stuck      []Held   // those of Waiting that wait for what should have come long ago
	Held       []Held
	Blocked    time.Duration // since when the ledger does not answer, or denies a right; 0: it answers
	BlockedWhy string
	Denied     bool          // it does answer, that a right is missing
	LastCommit time.Time     // zero: none yet
	Failing    time.Duration // since when transactions are not committed; 0: they are
	FailingWhy string
}

// Held is a partition that is not consumed until something outside changes.
type Held struct{ Partition, Reason, Why string }

// sessionState is written by a session and read by the watchdog and /readyz.
type sessionState struct {
	mu         sync.Mutex
	live       bool
	joined     bool      // the group has given it its partitions, be it none
	turned     time.Time // the last round of the loop began
	silent     time.Time // since when the ledger does not answer
	silentTold time.Time // when the log said so
	silentWhy  string
	refusing   bool      // silent, for it answers that a right is missing
	failing    time.Time // since when no transaction is committed
	failingWhy string
	deniedTold time.Time // when the log said that a right is missing
	lastCommit time.Time
	parts      []partState
}

type partState struct {
	name        string
	phase       phase
	reason, why string
}

func (st *sessionState) set(f func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	f()
}

func (st *sessionState) alive(yes bool) {
	st.set(func() { st.live, st.turned, st.joined, st.parts = yes, time.Now(), false, nil })
}
func (st *sessionState) moved() { st.set(func() { st.turned = time.Now() }) }
func (st *sessionState) committed() {
	st.set(func() {
		st.lastCommit, st.failing, st.failingWhy, st.deniedTold = time.Now(), time.Time{}, "", time.Time{}
	})
}

func (st *sessionState) nothingInHand() {
	st.set(func() { st.failing, st.failingWhy = time.Time{}, "" })
}

func (st *sessionState) notCommitting(why string) {
	st.set(func() {
		if st.failing.IsZero() {
			st.failing = time.Now()
		}
		st.failingWhy = why
	})
}

// levelOf is the level at which the log tells an error. A right that is missing is
// tried every few seconds and told at first, then each minute; /readyz has it.
func (st *sessionState) levelOf(err error) slog.Level {
	if !isDenied(err) {
		return slog.LevelWarn
	}
	st.notCommitting(err.Error())
	tell := false
	st.set(func() {
		if tell = time.Since(st.deniedTold) >= time.Minute; tell {
			st.deniedTold = time.Now()
		}
	})
	if tell {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// ledgerAnswered says for how long the ledger did not answer; 0: it did.
func (st *sessionState) ledgerAnswered() (after time.Duration) {
	st.set(func() {
		if !st.silent.IsZero() {
			after = time.Since(st.silent)
		}
		st.silent, st.silentTold, st.silentWhy, st.refusing = time.Time{}, time.Time{}, "", false
	})
	return after
}

// ledgerSilent says whether the log should tell it: at first, then each minute.
func (st *sessionState) ledgerSilent(err error) (tell bool) {
	st.set(func() {
		now := time.Now()
		if st.silent.IsZero() {
			st.silent = now
		}
		if tell = now.Sub(st.silentTold) >= time.Minute; tell {
			st.silentTold = now
		}
		st.silentWhy, st.refusing = err.Error(), false
	})
	return tell
}

// ledgerDenies is ledgerSilent for a right that is missing.
func (st *sessionState) ledgerDenies(err error) (tell bool) {
	tell = st.ledgerSilent(err)
	st.set(func() { st.refusing = true })
	return tell
}

// note keeps what the session's partitions are about.
func (st *sessionState) note(parts map[place]*part, joined bool) {
	ps := make([]partState, 0, len(parts))
	for _, p := range parts {
		ph, reason, why := p.seen()
		ps = append(ps, partState{fmt.Sprintf("%s/%d", p.topic, p.partition), ph, reason, why})
	}
	st.set(func() { st.parts, st.joined = ps, joined })
}

// stalled says for how long no round of the loop has begun although the ledger
// answers. The client has no max.poll.interval of its own: its heartbeats would
// go on for ever.
func (st *sessionState) stalled(now time.Time) time.Duration {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.live || !st.silent.IsZero() {
		return 0
	}
	return now.Sub(st.turned)
}

// Status adds up the sessions.
func (p *Processor) Status() Status {
	out := Status{Slot: int(p.slot.Load())}
	now := time.Now()
	for _, st := range p.states {
		st.addTo(&out, now)
	}
	slices.SortFunc(out.Running, byPlace)
	slices.SortFunc(out.Waiting, byPlace)
	byPartition := func(a, b Held) int { return byPlace(a.Partition, b.Partition) }
	slices.SortFunc(out.Held, byPartition)
	slices.SortFunc(out.Stuck, byPartition)
	return out
}

func (st *sessionState) addTo(out *Status, now time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.live {
		out.Sessions++
	}
	if !st.joined {
		out.Joining++
	}
	if !st.silent.IsZero() && now.Sub(st.silent) > out.Blocked {
		out.Blocked, out.BlockedWhy, out.Denied = now.Sub(st.silent), st.silentWhy, st.refusing
	}
	if !st.failing.IsZero() && now.Sub(st.failing) > out.Failing {
		out.Failing, out.FailingWhy = now.Sub(st.failing), st.failingWhy
	}
	if st.lastCommit.After(out.LastCommit) {
		out.LastCommit = st.lastCommit
	}
	for _, p := range st.parts {
		switch p.phase {
		case running:
			out.Running = append(out.Running, p.name)
		case held:
			out.Held = append(out.Held, Held{p.name, p.reason, p.why})
		case pending, learning:
			out.Waiting = append(out.Waiting, p.name)
			if p.reason == waitsHanging {
				out.Stuck = append(out.Stuck, Held{p.name, p.reason, p.why})
			}
		}
	}
}

// byPlace orders topic/partition by topic, then by number.
func byPlace(a, b string) int {
	i, j := strings.LastIndexByte(a, '/'), strings.LastIndexByte(b, '/')
	if c := strings.Compare(a[:max(i, 0)], b[:max(j, 0)]); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
