package processor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dedupledger/ledger"
)

// memLedger is the smallest ledger with the contract's positions, for tests of
// the loop on kfake. What PostgreSQL does is tested in ledger/cold and
// integration.
type memLedger struct {
	mu        sync.Mutex
	rows      map[[2]string]ledger.Entry // aliases too
	positions map[ledger.Partition]*memPosition
	counts    map[ledger.Verdict]int
	closed    map[ledger.Origin]bool
	facts     []ledger.Fact
	lessons   int
	gaps      []ledger.Gap
	fail      func(*ledger.Chunk) error // before a registration, or nil
	claiming  func()                    // before a claim, or nil
}

type memPosition struct {
	ledger.PositionRow
	claim ledger.Claim
}

func newMemLedger() *memLedger {
	return &memLedger{
		rows: map[[2]string]ledger.Entry{}, positions: map[ledger.Partition]*memPosition{},
		counts: map[ledger.Verdict]int{}, closed: map[ledger.Origin]bool{},
	}
}

func (m *memLedger) check(a *ledger.Advance) bool {
	p := m.positions[a.Partition]
	return p != nil && p.claim == a.Claim && p.Seq >= a.Seq && !p.D.Less(a.D)
}

func (m *memLedger) Register(_ context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(c); err != nil {
			return nil, err
		}
	}
	oldD := map[ledger.Partition]ledger.Position{}
	for i := range c.Advances {
		if !m.check(&c.Advances[i]) {
			return nil, ledger.ErrClaimLost
		}
		oldD[c.Advances[i].Partition] = m.positions[c.Advances[i].Partition].D
	}
	out := &ledger.Answer{Now: time.Now().UTC(), Results: make([]ledger.Result, len(c.Registrations))}
	for i := range c.Registrations {
		r := &c.Registrations[i]
		out.Results[i] = m.register(r, out.Now)
		v, _ := decide(r, &out.Results[i])
		if !r.Origin.At().Less(oldD[ledger.Partition{Topic: r.Origin.Topic, Partition: r.Origin.Partition}]) {
			m.counts[v]++
		}
	}
	for _, a := range c.Advances {
		p := m.positions[a.Partition]
		p.Seq++
		p.D = p.D.Max(a.NewD)
		if p.W.Less(a.W) {
			p.W, p.Outputs = a.W, cloneOutputs(a.Outputs)
		}
		out.Seqs = append(out.Seqs, p.Seq)
	}
	return out, nil
}

func (m *memLedger) register(r *ledger.Registration, now time.Time) ledger.Result {
	if len(r.Keys) == 0 {
		return ledger.Result{}
	}
	if m.closed[r.Origin] {
		return ledger.Result{Refused: reasonOutputRejected}
	}
	k := r.Keys[0]
	for _, by := range r.Keys {
		e, ok := m.rows[[2]string{by.Scope, by.Key}]
		if !ok || !now.Before(e.ExpiresAt) {
			continue
		}
		if e.Origin != r.Origin {
			id := [2]string{e.Scope, e.Key}
			e = m.rows[id]
			e.RetryCount++
			m.rows[id] = e
		}
		res := ledger.Result{Entry: e, Repeat: e.RetryCount}
		if by.Key != k.Key || by.Key != e.Key {
			res.Matched = by.Key
		}
		return res
	}
	e := ledger.Entry{
		Scope: k.Scope, Key: k.Key, Origin: r.Origin, PayloadSHA256: r.PayloadSHA256, HashMode: r.HashMode,
		FirstSeenAt: now, ExpiresAt: now.Add(k.Window),
	}
	for _, k := range r.Keys {
		m.rows[[2]string{k.Scope, k.Key}] = e
	}
	return ledger.Result{Entry: e, Inserted: true}
}

func (m *memLedger) Reject(_ context.Context, _ ledger.Claim, r *ledger.Registration, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.rows, func(_ [2]string, e ledger.Entry) bool {
		if e.Origin != r.Origin {
			return false
		}
		if !m.closed[r.Origin] {
			m.closed[r.Origin] = true
			m.counts[ledger.New]--
			m.counts[ledger.Invalid]++
		}
		return true
	})
	return nil
}

func (m *memLedger) Claim(_ context.Context, k ledger.PositionKey, c ledger.Claim) (ledger.PositionRow, bool, error) {
	if m.claiming != nil {
		m.claiming()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.positions[k.Partition]
	if p == nil {
		return ledger.PositionRow{}, false, nil
	}
	if p.Group != k.Group {
		return ledger.PositionRow{}, false, &ledger.OtherGroupError{Partition: k.Partition, Owner: p.Group}
	}
	p.claim = c
	row := p.PositionRow
	row.Outputs = cloneOutputs(row.Outputs)
	return row, true, nil
}

func (m *memLedger) OpenPosition(_ context.Context, k ledger.PositionKey, c ledger.Claim, start ledger.Position, out ledger.Outputs) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.positions[k.Partition] != nil {
		return false, nil
	}
	m.positions[k.Partition] = &memPosition{
		PositionRow: ledger.PositionRow{Group: k.Group, D: start, W: start, Outputs: cloneOutputs(out)}, claim: c,
	}
	return true, nil
}

func (m *memLedger) Flush(_ context.Context, as []ledger.Advance) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for i := range as {
		if !m.check(&as[i]) {
			err = ledger.ErrClaimLost
			continue
		}
		p := m.positions[as[i].Partition]
		if !as[i].W.Less(p.W) {
			p.W, p.Outputs = as[i].W, cloneOutputs(as[i].Outputs)
			p.D = p.D.Max(p.W)
		}
	}
	return err
}

func (m *memLedger) Learn(_ context.Context, l *ledger.Lesson) (int64, ledger.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.positions[l.Partition]
	if p == nil || p.claim != l.Claim {
		return 0, ledger.Position{}, ledger.ErrClaimLost
	}
	m.lessons++
	for _, x := range l.Learned {
		if !x.Origin.At().Less(p.D) {
			m.counts[x.Verdict]++
		}
		if x.Verdict == ledger.New {
			for _, key := range append([]string{x.Key.Key}, x.Aliases...) {
				m.rows[[2]string{x.Key.Scope, key}] = ledger.Entry{
					Scope: x.Key.Scope, Key: x.Key.Key, Origin: x.Origin, PayloadSHA256: x.PayloadSHA256, HashMode: ledger.HashRaw,
					FirstSeenAt: x.FirstSeenAt, ExpiresAt: x.ExpiresAt,
				}
			}
		}
	}
	p.D, p.W, p.Seq = p.D.Max(l.To), l.To, max(p.Seq, l.Seq)+1
	p.Outputs = cloneOutputs(l.Outputs)
	return p.Seq, p.D, nil
}

func (m *memLedger) RecordGap(_ context.Context, a *ledger.Advance, g *ledger.Gap) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.positions[g.Partition]
	if p == nil || !m.check(a) {
		return false, ledger.ErrClaimLost
	}
	if slices.Contains(m.gaps, *g) {
		return false, nil
	}
	m.gaps = append(m.gaps, *g)
	if g.Kind == ledger.GapLogStart {
		p.W, p.D = p.W.Max(g.To), p.D.Max(g.To)
	}
	return true, nil
}

func (m *memLedger) Former(context.Context, ledger.PositionKey) ([]ledger.Standing, error) {
	return nil, nil
}

func (m *memLedger) Hold(context.Context, ledger.Partition, ledger.Claim, string, string) (bool, error) {
	return true, nil
}

func (m *memLedger) Confirm(facts []ledger.Fact, _ ledger.Clock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.facts = append(m.facts, facts...)
}

// copyState is a backup; restore puts it back, as a failover that lost commits.
func (m *memLedger) copyState() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := map[[2]string]ledger.Entry{}
	maps.Copy(rows, m.rows)
	positions := map[ledger.Partition]*memPosition{}
	for k, v := range m.positions {
		c := *v
		c.Outputs = cloneOutputs(v.Outputs)
		positions[k] = &c
	}
	counts := map[ledger.Verdict]int{}
	maps.Copy(counts, m.counts)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rows, m.positions, m.counts = rows, positions, counts
	}
}

func (m *memLedger) count(v ledger.Verdict) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[v]
}
