package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"dedupledger/ledger"
)

// maxWrong is how many violations are kept; the first ones tell.
const maxWrong = 12

// row is a ledger row as answers told of it, from all writers. Answers come to
// the history in another order than they were made, so what needs all of them is
// checked at the end.
type row struct {
	scope, key string       // the primary key
	entry      ledger.Entry // of the first answer
	keys       []ledger.Key // of the record that made it; nil until its answer is in
	inserted   int          // answers that said "made by this record"
	clean      int          // records committed as NEW by it
	repeats    int64        // fresh repeats, the sum and the highest of their numbers
	sum, top   int64
	// recounted: a record that had been counted with another row met this one
	// later, so numbers may have holes.
	recounted bool
}

type rowID struct {
	scope, key string
	first      int64 // microseconds
}

// met is a repeat as it was answered.
type met struct {
	keys []ledger.Key
	by   string // the key
	now  time.Time
	row  *row
}

type history struct {
	mu       sync.Mutex
	rows     map[rowID]*row
	met      []met
	accounts Accounts         // verdicts as first counted
	changed  map[string]int64 // by account: records whose redelivery came to another verdict
	bad      []error
	more     int
}

func newHistory() *history {
	return &history{rows: map[rowID]*row{}, accounts: Accounts{}, changed: map[string]int64{}}
}

func (h *history) wrong(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(format, args...)
}

func (h *history) note(format string, args ...any) {
	if len(h.bad) < maxWrong {
		h.bad = append(h.bad, fmt.Errorf(format, args...))
		return
	}
	h.more++
}

func (h *history) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.more > 0 {
		return errors.Join(append(slices.Clone(h.bad), fmt.Errorf("and %d more", h.more))...)
	}
	return errors.Join(h.bad...)
}

// answer takes the result of one registration. fresh: at or above the old D.
func (h *history) answer(r *record, now time.Time, res *ledger.Result, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	owned := r.row
	r.result, r.row = *res, nil
	r.verdict = h.verdict(r, now, fresh)
	if r.counted == 0 {
		if !fresh {
			h.note("%s: first registered below D", r.reg.Origin.At())
		}
		r.counted = r.verdict
		h.count(r.reg.Account, r.counted)
	} else if r.counted != r.verdict {
		h.changed[r.reg.Account]++
	}
	if owned != nil && owned != r.row && owned.entry.Origin == r.reg.Origin {
		h.note("%s %s: the owner's redelivery at %s met another row than its own, live until %s",
			owned.scope, owned.key, now, owned.entry.ExpiresAt)
	}
}

func (h *history) count(account string, v ledger.Verdict) {
	if h.accounts[account] == nil {
		h.accounts[account] = map[ledger.Verdict]int64{}
	}
	h.accounts[account][v]++
}

func (h *history) verdict(r *record, now time.Time, fresh bool) ledger.Verdict {
	res := &r.result
	if len(r.reg.Keys) == 0 {
		if res.Inserted || res.Repeat != 0 || res.Refused != "" || res.Entry != (ledger.Entry{}) {
			h.note("an INVALID record was answered %s", tell(res))
		}
		return ledger.Invalid
	}
	k := r.reg.Keys[0]
	if refused := k.Scope == apiScope && r.reg.Origin.Gate == ledger.GateKafka; refused || res.Refused != "" {
		if !refused || res.Refused != reasonFedByAPI || res.Entry != (ledger.Entry{}) {
			h.note("%s %s: answered %s in a scope where refused is %t", k.Scope, k.Key, tell(res), refused)
		}
		return ledger.Invalid
	}
	r.row = h.meet(r, now, fresh)
	v, _ := ledger.Judge(&r.reg, &res.Entry)
	if own := res.Entry.Origin == r.reg.Origin; own != (v == ledger.New) {
		h.note("%s %s: %s although own origin is %t", k.Scope, k.Key, v, own)
	}
	h.repeat(r, v, fresh)
	return v
}

// meet finds the row of an answer, or takes it in, and compares what is said of
// it with what was said before.
func (h *history) meet(r *record, now time.Time, fresh bool) *row {
	e, k, by := &r.result.Entry, r.reg.Keys[0], r.result.Matched
	if e.Scope != k.Scope || by == "" && e.Key != k.Key {
		h.note("%s %s was answered with the row of %s %s", k.Scope, k.Key, e.Scope, e.Key)
	}
	if by != "" && (!names(r.reg.Keys, by) || k.Key == e.Key && by == e.Key) {
		h.note("%s %s was answered with the row of %s %s, by the key %s", k.Scope, k.Key, e.Scope, e.Key, by)
	}
	if now.Before(e.FirstSeenAt) || !now.Before(e.ExpiresAt) && (fresh || e.Origin != r.reg.Origin) {
		h.note("%s %s at %s: the row is not live, %s to %s", k.Scope, k.Key, now.Format(clockFormat),
			e.FirstSeenAt.Format(clockFormat), e.ExpiresAt.Format(clockFormat))
	}
	id := rowID{e.Scope, e.Key, e.FirstSeenAt.UnixMicro()}
	known := h.rows[id]
	if known == nil {
		known = &row{scope: e.Scope, key: e.Key, entry: *e}
		h.rows[id] = known
	}
	if by == "" {
		by = k.Key
	}
	if e.Origin != r.reg.Origin && fresh {
		h.met = append(h.met, met{r.reg.Keys, by, now, known})
	}
	if !sameRow(&known.entry, e) {
		h.note("%s %s: one row was told as %s and as %s", k.Scope, k.Key,
			tell(&ledger.Result{Entry: known.entry}), tell(&r.result))
	}
	if r.result.Inserted {
		known.inserted++
		known.keys = r.reg.Keys
		made := ledger.Entry{
			Origin: r.reg.Origin, PayloadSHA256: r.reg.PayloadSHA256, CanonicalSHA256: r.reg.CanonicalSHA256,
			HashMode: r.reg.HashMode, FirstSeenAt: now, ExpiresAt: now.Add(k.Window),
		}
		if !sameRow(&made, e) {
			h.note("%s %s: made as %s by %s at %s for %s", k.Scope, k.Key, tell(&r.result),
				r.reg.Origin.At(), now.Format(clockFormat), k.Window)
		}
	}
	return known
}

func names(keys []ledger.Key, key string) bool {
	return slices.ContainsFunc(keys, func(k ledger.Key) bool { return k.Key == key })
}

// sameRow compares what never changes in a row.
func sameRow(a, b *ledger.Entry) bool {
	return a.Origin == b.Origin && a.FirstSeenAt.Equal(b.FirstSeenAt) && a.ExpiresAt.Equal(b.ExpiresAt) &&
		a.PayloadSHA256 == b.PayloadSHA256 && a.HashMode == b.HashMode && a.CanonicalSHA256 == b.CanonicalSHA256
}

func (h *history) repeat(r *record, v ledger.Verdict, fresh bool) {
	n := r.result.Repeat
	switch {
	case v == ledger.New && n != 0:
		h.note("%s %s: the first copy is repeat %d", r.row.scope, r.row.key, n)
	case v != ledger.New && fresh:
		if n < 1 {
			h.note("%s %s: %s with repeat number %d", r.row.scope, r.row.key, v, n)
		}
		r.row.repeats++
		r.row.sum += n
		r.row.top = max(r.row.top, n)
	case v != ledger.New && !fresh && r.counted != 0:
		r.row.recounted = true
	}
}

// commit is the output of a record made visible.
func (h *history) commit(r *record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.verdict == ledger.New {
		r.row.clean++
	}
}

const clockFormat = "01-02T15:04:05.000000"

// tell is a result in one line, without the hashes in full.
func tell(r *ledger.Result) string {
	e := &r.Entry
	if e.Key == "" {
		return fmt.Sprintf("no row, refused %q", r.Refused)
	}
	return fmt.Sprintf("row of gate %d %x/%d %s from %s to %s, %x %s %x, inserted %t, repeat %d",
		e.Origin.Gate, e.Origin.Topic[:1], e.Origin.Partition, e.Origin.At(),
		e.FirstSeenAt.Format(clockFormat), e.ExpiresAt.Format(clockFormat),
		e.PayloadSHA256[:3], e.HashMode, e.CanonicalSHA256[:3], r.Inserted, r.Repeat)
}

// finish checks what needs the whole history.
func (h *history) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	byKey := map[[2]string][]*row{}
	for _, r := range h.rows {
		for _, k := range r.keys {
			id := [2]string{k.Scope, k.Key}
			byKey[id] = append(byKey[id], r)
		}
		if r.inserted != 1 {
			h.note("%s %s: %d records made one row", r.scope, r.key, r.inserted)
		}
		if r.clean != 1 {
			h.note("%s %s: %d records of one window in clean", r.scope, r.key, r.clean)
		}
		if n := r.repeats; !r.recounted && (r.sum != n*(n+1)/2 || r.top != n) {
			h.note("%s %s: %d repeats are numbered up to %d, sum %d", r.scope, r.key, n, r.top, r.sum)
		}
	}
	for id, rows := range byKey {
		slices.SortFunc(rows, func(a, b *row) int { return a.entry.FirstSeenAt.Compare(b.entry.FirstSeenAt) })
		for i := 1; i < len(rows); i++ {
			if rows[i].entry.FirstSeenAt.Before(rows[i-1].entry.ExpiresAt) {
				h.note("%s %s: two live rows, of %s until %s and of %s from %s", id[0], id[1],
					rows[i-1].entry.Origin.At(), rows[i-1].entry.ExpiresAt, rows[i].entry.Origin.At(), rows[i].entry.FirstSeenAt)
			}
		}
	}
	for i := range h.met {
		h.compareMet(&h.met[i], byKey)
	}
}

// compareMet checks by which key a record was a repeat: by one that the row has
// too, and by the first of its own that had a live row. Those made at this very
// moment are left out: they may stand behind it in the chunk.
func (h *history) compareMet(m *met, byKey map[[2]string][]*row) {
	if !names(m.row.keys, m.by) {
		h.note("%s %s: a repeat of the row of %s, which has no such key", m.row.scope, m.by, m.row.key)
	}
	for _, k := range m.keys {
		if k.Key == m.by {
			return
		}
		for _, r := range byKey[[2]string{k.Scope, k.Key}] {
			if r != m.row && r.entry.FirstSeenAt.Before(m.now) && m.now.Before(r.entry.ExpiresAt) {
				h.note("%s %s: a repeat by the key %s although %s was live", m.row.scope, m.keys[0].Key, m.by, k.Key)
			}
		}
	}
}

// compareAccounts: each record is counted once, under its first verdict. Where a
// redelivery behind the end of a window came to another one, the ledger may have
// corrected the account; the sum stays.
func (h *history) compareAccounts(got Accounts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for account := range got {
		if h.accounts[account] == nil {
			h.note("account %s: nothing was registered under it", account)
		}
	}
	for account, want := range h.accounts {
		var total, sum, off int64
		for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Drift, ledger.Invalid} {
			total += want[v]
			sum += got[account][v]
			off += max(want[v]-got[account][v], got[account][v]-want[v])
		}
		if total != sum || off > 2*h.changed[account] {
			h.note("account %s does not close: %d records decided %v, counted %d %v (%d changed)",
				account, total, want, sum, got[account], h.changed[account])
		}
	}
}
