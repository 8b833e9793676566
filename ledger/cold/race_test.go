package cold_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// writer is a session of its own partition that registers the same stream of
// records again and again, with other borders, and remembers who was NEW.
type writer struct {
	*session
	records []rec
	next    int // index of the first record not decided yet
	random  *rand.Rand
	owners  map[string]int64 // scope and key -> offset that was NEW
}

const (
	raceScopes = 5
	raceKeys   = 150
)

func (b *bundle) writers(n, records int, seed uint64) []*writer {
	b.Helper()
	writers := make([]*writer, n)
	for i := range writers {
		w := &writer{
			session: b.session(1, int32(i)),
			random:  rand.New(rand.NewPCG(seed, uint64(i))),
			owners:  map[string]int64{},
		}
		w.more(records)
		writers[i] = w
	}
	return writers
}

// more appends n records behind those the writer has.
func (w *writer) more(n int) {
	for range n {
		r := rec{
			offset: int64(len(w.records)), payload: fmt.Sprint(w.random.IntN(3)),
			scope: fmt.Sprintf("t1:f%d", w.random.IntN(raceScopes)), key: fmt.Sprintf("k%d", w.random.IntN(raceKeys)),
		}
		if w.random.IntN(50) == 0 {
			r.key, r.reason = "", "key.missing"
		}
		w.records = append(w.records, r)
	}
}

// run goes through the records in chunks of random size, steps back at random
// (a crash: a new session claims and W is where it starts), and ends when all
// are decided.
func (w *writer) run(b *bundle) error {
	for at := w.next; at < len(w.records); {
		to := min(at+1+w.random.IntN(40), len(w.records))
		c := w.chunk(w.records[at:to]...)
		a, err := b.l.Register(b.Context(), c)
		if err != nil {
			return fmt.Errorf("offsets %d to %d: %w", at, to, err)
		}
		w.seq, w.d = a.Seqs[0], w.d.Max(c.Advances[0].NewD)
		for i := range c.Registrations {
			if err := w.note(&c.Registrations[i], &a.Results[i]); err != nil {
				return err
			}
		}
		at = to
		if w.random.IntN(3) == 0 {
			at = max(0, to-w.random.IntN(60))
			claim := ledger.NewClaim()
			row, _, err := b.l.Claim(b.Context(), w.key, claim)
			if err != nil {
				return err
			}
			w.claim, w.seq, w.d = claim, row.Seq, row.D
		}
		w.next = at
	}
	return nil
}

// note checks that a verdict is the one of the first time.
func (w *writer) note(r *ledger.Registration, res *ledger.Result) error {
	if len(r.Keys) == 0 || w.owners == nil {
		return nil
	}
	verdict, _ := ledger.Judge(r, &res.Entry)
	name := r.Keys[0].Scope + " " + r.Keys[0].Key
	owner, owned := w.owners[name]
	switch {
	case verdict == ledger.New && owned && owner != r.Origin.Offset:
		return fmt.Errorf("%s: offsets %d and %d are both NEW", name, owner, r.Origin.Offset)
	case verdict == ledger.New:
		w.owners[name] = r.Origin.Offset
	case owned && owner == r.Origin.Offset:
		return fmt.Errorf("%s: offset %d was NEW and is %s", name, owner, verdict)
	}
	return nil
}

func race(b *bundle, writers []*writer) error {
	var wg sync.WaitGroup
	errs := make([]error, len(writers))
	for i, w := range writers {
		wg.Go(func() { errs[i] = w.run(b) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Fault card: F05.
func TestRacingWriters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	writers := b.writers(6, 1500, seed)
	require.NoError(t, race(b, writers))

	owners := map[string]int{}
	for _, w := range writers {
		for name := range w.owners {
			owners[name]++
		}
	}
	for name, n := range owners {
		require.Equal(t, 1, n, "owners of %s", name)
	}
	require.Equal(t, fmt.Sprint(len(owners)), b.one(`select count(*) from dedup_ledger`))
	require.Equal(t, "0", b.one(`select count(*) from (select from dedup_ledger group by scope, key having count(*) > 1) x`))
	require.Equal(t, fmt.Sprint(6*1500), b.one(`select sum(count) from dedup_hour`), "the accounts close")
	require.Equal(t, fmt.Sprint(len(owners)), b.one(`select sum(count) from dedup_hour where status = 'NEW'`))
	require.Equal(t, b.one(`select sum(retry_count) from dedup_ledger`), b.one(`select sum(count) from dedup_hour where status in ('SEEN', 'DRIFT')`))
	require.Equal(t, b.one(`select sum(drift_count) from dedup_ledger`), b.one(`select sum(count) from dedup_hour where status = 'DRIFT'`))
	require.Equal(t, "0", b.one(`select count(*) from (select from dedup_sighting group by origin_partition, origin_offset having count(*) > 1) x`))
	require.Equal(t, b.one(`select sum(count) from dedup_hour where status <> 'NEW'`), b.one(`select count(*) from dedup_sighting`))
}

// Windows of seconds and of a year beside each other, over keys that expire
// and are taken again while they race: no two rows of a key ever live at once,
// and although verdicts change with the windows, every record is counted once.
// It races on until a key was taken again: a fast machine decides the first
// records before their windows of a second have passed.
func TestRacingWindows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const records, retaken = 1200, `select count(*) from (select from dedup_ledger group by scope, key having count(*) > 1) x`
	windows := []time.Duration{time.Second, 2 * time.Second, 40 * 24 * time.Hour, 400 * 24 * time.Hour}
	writers, rounds := b.writers(4, 0, seed), 0
	for ; rounds == 0 || b.one(retaken) == "0"; rounds++ {
		for _, w := range writers {
			w.owners = nil
			w.more(records)
			for i := range w.records[w.next:] {
				r := &w.records[w.next+i]
				r.window = windows[w.random.IntN(len(windows))]
				if r.key != "" {
					r.key += fmt.Sprint(w.random.IntN(20))
				}
			}
		}
		require.NoError(t, race(b, writers))
	}
	require.Equal(t, "0", b.one(`select count(*) from dedup_ledger a join dedup_ledger c on a.h = c.h and a.scope = c.scope and a.key = c.key
		and (a.first_seen_at, a.origin_partition, a.origin_offset) < (c.first_seen_at, c.origin_partition, c.origin_offset)
		and a.expires_at > c.first_seen_at`), "no two live at once")
	require.Equal(t, fmt.Sprint(len(writers)*rounds*records), b.one(`select sum(count) from dedup_hour`), "the accounts close")
	require.Equal(t, b.one(`select sum(count) from dedup_hour where status <> 'NEW'`), b.one(`select count(*) from dedup_sighting`))
	require.Equal(t, "0", b.one(`select count(*) from (select from dedup_sighting group by origin_partition, origin_offset having count(*) > 1) x`))
}

// The negative control: without the scope lock the same race doubles keys, so
// the test above would notice.
// Fault card: F05.
func TestWithoutTheScopeLockKeysDouble(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const lock = "for no key update /* the scope lock */"
	text := b.one(`select pg_get_functiondef('dedup_register_3'::regproc)`)
	require.Equal(t, 1, strings.Count(text, lock))
	b.exec(strings.Replace(text, lock, "", 1))
	b.l = b.open(cold.Config{})

	for round := range 20 {
		writers := b.writers(6, 1500, uint64(round))
		err := race(b, writers)
		if err != nil && !errors.Is(err, ledger.ErrUnavailable) {
			t.Logf("a writer saw it: %v", err)
		}
		if b.one(`select count(*) from (select from dedup_ledger where closed_at is null group by scope, key having count(*) > 1) x`) != "0" {
			return
		}
		b.exec(`truncate dedup_ledger, dedup_sighting, dedup_hour, dedup_position`)
	}
	require.Fail(t, "no key was doubled without the lock")
}
