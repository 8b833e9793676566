package ledgertest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// running is a clock that moves on by 60 ms with each reading, so that windows of
// seconds end many times in a run without anybody waiting.
func running() func() time.Time {
	var readings atomic.Int64
	start := time.Date(2026, 1, 31, 23, 59, 50, 0, time.UTC)
	return func() time.Time { return start.Add(time.Duration(readings.Add(1)) * 60 * time.Millisecond) }
}

func TestReference(t *testing.T) {
	t.Parallel()
	Exercise(t, func(*testing.T) Ledger { return NewReference(running()) })
}

// Each of these ledgers breaks one rule, and the suite has to notice. A control
// that passes would mean that the suite looks at nothing.
func TestNegativeControls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken func() Ledger
		says   string
	}{
		"a seen flag in place of the origin":       {newSeenFlag, "by the reference|told as"},
		"a fact in Redis trusted for a verdict":    {newTrustedFact, "is not live|by the reference"},
		"two writers without a common lock":        {newSplit, "two live rows"},
		"claim, seq and D not checked":             {newUnclaimed, "with a lost claim"},
		"redelivered records counted again":        {newCountedTwice, "does not close"},
		"a batch collapsed by key before deciding": {newCollapsed, "records made one row|by the reference"},
		"a repeat extends the window":              {newExtended, "by the reference|told as"},
		"aliases not looked at":                    {newPrimaryOnly, "by the reference|two live rows"},
		"keys registered though one is another's":  {newHalf, "by the reference|records made one row"},
		"aliases before the primary key":           {newBackwards, "by the reference|was live"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			load := Load{Sequential: 10_000, Racing: 10_000, Writers: 4, Seed: seed()}
			_, err := load.Check(t.Context(), c.broken())
			require.Error(t, err)
			require.Regexp(t, c.says, err.Error())
		})
	}
}

// seenFlag forgets who was first: a row only says that the key was seen.
type seenFlag struct{ *Reference }

func newSeenFlag() Ledger { return seenFlag{NewReference(running())} }

func (l seenFlag) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.Reference.Register(ctx, c)
	if err == nil {
		for i := range a.Results {
			if !a.Results[i].Inserted && a.Results[i].Entry.Key != "" {
				a.Results[i].Entry.Origin = ledger.Origin{Gate: ledger.GateKafka}
			}
		}
	}
	return a, err
}

// trustedFact answers from a memory of confirmed rows, which does not hear of
// the end of a window.
type trustedFact struct {
	*Reference
	mu    *sync.Mutex
	facts map[[2]string]ledger.Fact
}

func newTrustedFact() Ledger {
	return trustedFact{NewReference(running()), new(sync.Mutex), map[[2]string]ledger.Fact{}}
}

func (l trustedFact) Confirm(facts []ledger.Fact, _ ledger.Clock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range facts {
		l.facts[[2]string{f.Scope, f.Key}] = f
	}
}

func (l trustedFact) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.Reference.Register(ctx, c)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range c.Registrations {
		if len(r.Keys) == 0 || a.Results[i].Refused != "" {
			continue
		}
		if f, known := l.facts[[2]string{r.Keys[0].Scope, r.Keys[0].Key}]; known {
			a.Results[i].Entry.Origin, a.Results[i].Entry.FirstSeenAt = f.Origin, f.FirstSeenAt
			a.Results[i].Entry.ExpiresAt, a.Results[i].Inserted = f.ExpiresAt, false
		}
	}
	return a, nil
}

// split gives odd and even topics a ledger each.
type split [2]*Reference

func newSplit() Ledger {
	clock := running()
	return split{NewReference(clock), NewReference(clock)}
}

func (l split) of(p ledger.Partition) *Reference { return l[p.Topic[0]%2] }

func (l split) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	if c.Gate != ledger.GateKafka {
		if _, err := l[1].Register(ctx, c); err != nil {
			return nil, err
		}
		return l[0].Register(ctx, c)
	}
	return l.of(c.Advances[0].Partition).Register(ctx, c)
}

func (l split) Claim(ctx context.Context, k ledger.PositionKey, c ledger.Claim) (ledger.PositionRow, bool, error) {
	return l.of(k.Partition).Claim(ctx, k, c)
}

func (l split) OpenPosition(ctx context.Context, k ledger.PositionKey, c ledger.Claim, start ledger.Position, out ledger.Outputs) (bool, error) {
	return l.of(k.Partition).OpenPosition(ctx, k, c, start, out)
}

func (l split) Confirm([]ledger.Fact, ledger.Clock) {}

func (l split) Accounts(ctx context.Context) (Accounts, error) {
	sum, _ := l[0].Accounts(ctx)
	other, _ := l[1].Accounts(ctx)
	for account, counts := range other {
		if sum[account] == nil {
			sum[account] = map[ledger.Verdict]int64{}
		}
		for v, n := range counts {
			sum[account][v] += n
		}
	}
	return sum, nil
}

// unclaimed lets every session write.
type unclaimed struct {
	*Reference
	claims *sync.Map
}

func newUnclaimed() Ledger { return unclaimed{NewReference(running()), new(sync.Map)} }

func (l unclaimed) Claim(ctx context.Context, k ledger.PositionKey, c ledger.Claim) (ledger.PositionRow, bool, error) {
	l.claims.Store(k.Partition, c)
	return l.Reference.Claim(ctx, k, c)
}

func (l unclaimed) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	same := *c
	same.Advances = slices.Clone(c.Advances)
	for i := range same.Advances {
		claim, _ := l.claims.Load(same.Advances[i].Partition)
		same.Advances[i].Claim, _ = claim.(ledger.Claim)
		same.Advances[i].Seq, same.Advances[i].D = 0, ledger.Position{}
	}
	return l.Reference.Register(ctx, &same)
}

// countedTwice adds every registration to the accounts.
type countedTwice struct {
	*Reference
	mu    *sync.Mutex
	extra Accounts
}

func newCountedTwice() Ledger {
	return countedTwice{NewReference(running()), new(sync.Mutex), Accounts{}}
}

func (l countedTwice) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.Reference.Register(ctx, c)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range c.Registrations {
		r := &c.Registrations[i]
		v := ledger.Invalid
		if a.Results[i].Entry.Key != "" {
			v, _ = ledger.Judge(r, &a.Results[i].Entry)
		}
		if l.extra[r.Account] == nil {
			l.extra[r.Account] = map[ledger.Verdict]int64{}
		}
		l.extra[r.Account][v]++
	}
	return a, nil
}

func (l countedTwice) Accounts(context.Context) (Accounts, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.extra), nil
}

// collapsed takes every copy in a chunk for the one that was inserted.
type collapsed struct{ *Reference }

func newCollapsed() Ledger { return collapsed{NewReference(running())} }

func (l collapsed) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.Reference.Register(ctx, c)
	if err != nil {
		return nil, err
	}
	made := map[[2]string]bool{}
	for i := range a.Results {
		e := &a.Results[i].Entry
		id := [2]string{e.Scope, e.Key}
		if made[id] {
			e.Origin, e.PayloadSHA256 = c.Registrations[i].Origin, c.Registrations[i].PayloadSHA256
			a.Results[i].Inserted, a.Results[i].Repeat = true, 0
		}
		made[id] = made[id] || a.Results[i].Inserted
	}
	return a, nil
}

// primaryOnly leaves the aliases out.
type primaryOnly struct{ *Reference }

func newPrimaryOnly() Ledger { return primaryOnly{NewReference(running())} }

func (l primaryOnly) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	same := *c
	same.Registrations = slices.Clone(c.Registrations)
	for i := range same.Registrations {
		same.Registrations[i].Keys = same.Registrations[i].Keys[:min(1, len(same.Registrations[i].Keys))]
	}
	return l.Reference.Register(ctx, &same)
}

// half registers the keys that are free of a record that is a repeat by another.
type half struct{ *Reference }

func newHalf() Ledger { return half{NewReference(running())} }

func (l half) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.Reference.Register(ctx, c)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range c.Registrations {
		r := c.Registrations[i]
		if e := &a.Results[i].Entry; e.Key == "" || e.Origin == r.Origin {
			continue
		}
		for _, k := range r.Keys {
			if row, _ := l.meet([]ledger.Key{k}, a.Now); row == nil {
				r.Keys = []ledger.Key{k}
				l.insert(&r, a.Now)
			}
		}
	}
	return a, nil
}

// backwards names the row of the last known key, not of the first.
type backwards struct{ *Reference }

func newBackwards() Ledger { return backwards{NewReference(running())} }

func (l backwards) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.Reference.Register(ctx, c)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range c.Registrations {
		r, res := &c.Registrations[i], &a.Results[i]
		if res.Entry.Key == "" || res.Entry.Origin == r.Origin {
			continue
		}
		for _, k := range r.Keys {
			if row, by := l.meet([]ledger.Key{k}, a.Now); row != nil && row.Origin != r.Origin {
				res.Entry, res.Matched = *row, by
			}
		}
	}
	return a, nil
}

// extended counts the window from the last copy.
type extended struct{ *Reference }

func newExtended() Ledger { return extended{NewReference(running())} }

func (l extended) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	a, err := l.Reference.Register(ctx, c)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range a.Results {
		e := &a.Results[i].Entry
		if row := l.rows[[2]string{e.Scope, e.Key}]; row != nil && a.Results[i].Repeat > 0 {
			row.ExpiresAt = a.Now.Add(c.Registrations[i].Keys[0].Window)
			e.ExpiresAt = row.ExpiresAt
		}
	}
	return a, nil
}
