package ledgertest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"dedupledger/ledger"
)

// reasonFedByAPI is the closed code of D1.
const reasonFedByAPI = "scope.fed_by_api"

// Reference is the ledger of ARCHITECTURE §4 and §5 in memory, for tests only: simple
// enough to be read against the design, and safe for concurrent use.
type Reference struct {
	clock func() time.Time

	mu        sync.Mutex
	gates     map[string]ledger.Gate            // by ledger scope
	rows      map[[2]string]*ledger.Entry       // by scope and key, aliases as well: the latest; live or expired
	made      map[ledger.Origin]*ledger.Entry   // by who made the row, while it is not closed
	positions map[ledger.Partition]*refPosition //
	counted   map[ledger.Origin]*refCounted     // makers of rows, and repeats that have a sighting
	accounts  Accounts
}

// refCounted is what a record was counted as, and with which row.
type refCounted struct {
	verdict ledger.Verdict
	row     *ledger.Entry
	by      string // the key
}

// keepPerRow is how many repeats of a row have a sighting; later ones are only
// counted (docs/tables.md).
const keepPerRow = 100

type refPosition struct {
	ledger.PositionRow
	claim ledger.Claim
}

// NewReference makes an empty one. clock stands for Postgres's.
func NewReference(clock func() time.Time) *Reference {
	return &Reference{
		clock:     clock,
		gates:     map[string]ledger.Gate{},
		rows:      map[[2]string]*ledger.Entry{},
		made:      map[ledger.Origin]*ledger.Entry{},
		positions: map[ledger.Partition]*refPosition{},
		counted:   map[ledger.Origin]*refCounted{},
		accounts:  Accounts{},
	}
}

// Register takes a chunk, whole or not at all.
func (r *Reference) Register(_ context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, err := r.advance(c.Advances)
	if err != nil {
		return nil, err
	}
	a := &ledger.Answer{Now: r.clock(), Results: make([]ledger.Result, len(c.Registrations))}
	for _, adv := range c.Advances {
		a.Seqs = append(a.Seqs, r.positions[adv.Partition].Seq)
	}
	repeats := map[*ledger.Entry][]numbered{}
	for i := range c.Registrations {
		reg := &c.Registrations[i]
		old, known := before[ledger.Partition{Topic: reg.Origin.Topic, Partition: reg.Origin.Partition}]
		fresh := !known || !reg.Origin.At().Less(old)
		res := &a.Results[i]
		v := r.register(c.Gate, reg, a.Now, fresh, res)
		if fresh {
			r.count(reg.Account, v, 1)
		}
		if res.Repeat > 0 {
			row := r.rows[[2]string{res.Entry.Scope, res.Entry.Key}]
			repeats[row] = append(repeats[row], numbered{reg.Origin, v, res})
		}
	}
	for row, all := range repeats {
		number(row, all)
	}
	return a, nil
}

// numbered is a record that a chunk counted as a repeat of a row.
type numbered struct {
	origin  ledger.Origin
	verdict ledger.Verdict
	result  *ledger.Result
}

// number gives the repeats of a chunk, which have one time, their numbers by
// origin (docs/tables.md): those of a row go on where they were before the chunk.
func number(row *ledger.Entry, all []numbered) {
	slices.SortFunc(all, func(a, b numbered) int {
		return cmp.Or(bytes.Compare(a.origin.Topic[:], b.origin.Topic[:]), cmp.Compare(a.origin.Partition, b.origin.Partition),
			cmp.Compare(a.origin.Epoch, b.origin.Epoch), cmp.Compare(a.origin.Offset, b.origin.Offset))
	})
	of := map[ledger.Verdict]int64{ledger.Drift: row.DriftCount, ledger.Seen: row.RetryCount - row.DriftCount}
	for _, n := range all {
		of[n.verdict]--
	}
	for _, n := range all {
		of[n.verdict]++
		n.result.Repeat, n.result.Copy = of[ledger.Drift]+of[ledger.Seen], of[n.verdict]
	}
}

// advance checks all positions before it moves any, and answers the old Ds.
func (r *Reference) advance(advances []ledger.Advance) (map[ledger.Partition]ledger.Position, error) {
	before := map[ledger.Partition]ledger.Position{}
	for _, adv := range advances {
		p := r.positions[adv.Partition]
		if p == nil || p.claim != adv.Claim || p.Seq < adv.Seq || p.D.Less(adv.D) {
			return nil, fmt.Errorf("advance %s: %w", adv.Partition, ledger.ErrClaimLost)
		}
		before[adv.Partition] = p.D
	}
	for _, adv := range advances {
		p := r.positions[adv.Partition]
		p.Seq++
		p.D = p.D.Max(adv.NewD)
		if p.W.Less(adv.W) {
			p.W, p.Outputs = adv.W, adv.Outputs
		}
	}
	return before, nil
}

// register is one record: its row, found or made, and its verdict.
func (r *Reference) register(gate ledger.Gate, reg *ledger.Registration, now time.Time, fresh bool, out *ledger.Result) ledger.Verdict {
	if len(reg.Keys) == 0 {
		return ledger.Invalid
	}
	k := reg.Keys[0]
	if g, known := r.gates[k.Scope]; known && g != gate {
		out.Refused = reasonFedByAPI
		return ledger.Invalid
	}
	r.gates[k.Scope] = gate
	row, by := r.meet(reg.Keys, now)
	if own := r.made[reg.Origin]; own != nil && !fresh {
		row, by = own, own.Key // also when its window has ended: copies may have been SEEN of it
	} else if was := r.counted[reg.Origin]; !fresh && was != nil && was.verdict != ledger.New && now.Before(was.row.ExpiresAt) {
		row, by = was.row, was.by // although another has its primary key by now
	} else if row == nil {
		row, by = r.insert(reg, now), k.Key
		out.Inserted = true
	}
	if by != k.Key || by != row.Key {
		out.Matched = by
	}
	v, _ := ledger.Judge(reg, row)
	if fresh {
		out.Repeat = r.first(reg, row, v)
	} else {
		out.Repeat = r.correct(reg, row, v)
	}
	if s := r.counted[reg.Origin]; s != nil {
		s.by = by
	}
	out.Entry = *row
	return v
}

// meet is the first live row that one of the keys has, and that key: of the
// primary key, then of the aliases in their order.
func (r *Reference) meet(keys []ledger.Key, now time.Time) (*ledger.Entry, string) {
	for _, k := range keys {
		if row := r.rows[[2]string{k.Scope, k.Key}]; row != nil && now.Before(row.ExpiresAt) {
			return row, k.Key
		}
	}
	return nil, ""
}

// insert makes the row of a record under all its keys.
func (r *Reference) insert(reg *ledger.Registration, now time.Time) *ledger.Entry {
	k := reg.Keys[0]
	row := &ledger.Entry{
		Scope: k.Scope, Key: k.Key, Origin: reg.Origin,
		PayloadSHA256: reg.PayloadSHA256, CanonicalSHA256: reg.CanonicalSHA256, HashMode: reg.HashMode,
		FirstSeenAt: now, ExpiresAt: now.Add(k.Window),
	}
	for _, k := range reg.Keys {
		r.rows[[2]string{k.Scope, k.Key}] = row
	}
	r.made[reg.Origin] = row
	return row
}

// first is a record's first registration; the answer is Result.Repeat.
func (r *Reference) first(reg *ledger.Registration, row *ledger.Entry, v ledger.Verdict) int64 {
	var n int64
	if v != ledger.New {
		n = repeat(row, v)
	}
	if n <= keepPerRow {
		r.counted[reg.Origin] = &refCounted{verdict: v, row: row}
	}
	return n
}

func repeat(row *ledger.Entry, v ledger.Verdict) int64 {
	row.RetryCount++
	if v == ledger.Drift {
		row.DriftCount++
	}
	return row.RetryCount
}

// correct is for a redelivery that meets another row than the record was counted
// with, because that one has expired or was closed. Its account moves, so that
// verdicts and accounts go on agreeing. If it is a repeat now, it is one more of
// the row it meets, whatever it was before: its own row may have ended, another
// record have made the next one, and the old owner come again behind that.
func (r *Reference) correct(reg *ledger.Registration, row *ledger.Entry, v ledger.Verdict) int64 {
	s := r.counted[reg.Origin]
	if s == nil || s.row == row {
		return 0
	}
	r.count(reg.Account, s.verdict, -1)
	r.count(reg.Account, v, 1)
	s.verdict, s.row = v, row
	if v == ledger.New {
		return 0
	}
	return repeat(row, v)
}

func (r *Reference) count(account string, v ledger.Verdict, n int64) {
	if r.accounts[account] == nil {
		r.accounts[account] = map[ledger.Verdict]int64{}
	}
	r.accounts[account][v] += n
}

// Claim writes the claim into the row, if there is one, and answers the row.
func (r *Reference) Claim(_ context.Context, key ledger.PositionKey, claim ledger.Claim) (ledger.PositionRow, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.positions[key.Partition]
	if p == nil {
		return ledger.PositionRow{}, false, nil
	}
	if p.Group != key.Group {
		return ledger.PositionRow{}, false, &ledger.OtherGroupError{Partition: key.Partition, Owner: p.Group}
	}
	p.claim = claim
	return p.PositionRow, true, nil
}

// OpenPosition makes the row if there is none.
func (r *Reference) OpenPosition(_ context.Context, key ledger.PositionKey, claim ledger.Claim, start ledger.Position, out ledger.Outputs) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.positions[key.Partition] != nil {
		return false, nil
	}
	r.positions[key.Partition] = &refPosition{
		PositionRow: ledger.PositionRow{Group: key.Group, D: start, W: start, Outputs: out},
		claim:       claim,
	}
	return true, nil
}

// Confirm forgets: there is one tier.
func (r *Reference) Confirm([]ledger.Fact, ledger.Clock) {}

// Accounts is a copy.
func (r *Reference) Accounts(context.Context) (Accounts, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Accounts{}
	for account, counts := range r.accounts {
		out[account] = maps.Clone(counts)
	}
	return out, nil
}
