package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dedupledger/ledger"
)

// sequential is one session alone; the reference is told Postgres's clock and
// must come to the same answers.
func (l Load) sequential(ctx context.Context, under Ledger, h *history) (int, error) {
	s := l.session(under, h, 1, 4)
	s.also = newFollower()
	n, err := s.run(ctx, l.Sequential)
	if err != nil {
		return n, err
	}
	accounts, err := under.Accounts(ctx)
	if err != nil {
		return n, fmt.Errorf("read the accounts: %w", err)
	}
	s.also.compareAccounts(h, accounts)
	return n, nil
}

// race is several writers, each with partitions of its own and all with the same
// scopes and keys.
func (l Load) race(ctx context.Context, under Ledger, h *history) (int, error) {
	var mu sync.Mutex
	var total int
	g, ctx := errgroup.WithContext(ctx)
	for w := range l.Writers {
		g.Go(func() error {
			n, err := l.session(under, h, byte(2+w), 2).run(ctx, l.Racing/l.Writers)
			mu.Lock()
			defer mu.Unlock()
			total += n
			return err
		})
	}
	err := g.Wait()
	return total, err
}

func (l Load) session(under Ledger, h *history, topic byte, partitions int32) *session {
	rng := l.rng(uint64(topic))
	s := &session{rng: rng, under: under, h: h}
	for n := range partitions {
		s.partitions = append(s.partitions, newPartition(rng, topic, n))
	}
	return s
}

// run registers at least n records, redeliveries included, and leaves nothing
// uncommitted.
func (s *session) run(ctx context.Context, n int) (int, error) {
	for _, p := range s.partitions {
		if err := s.open(ctx, p); err != nil {
			return s.made, err
		}
	}
	for s.made < n {
		if err := s.step(ctx); err != nil {
			return s.made, err
		}
	}
	return s.made, s.drain(ctx)
}

// drain polls to the end of every partition and commits.
func (s *session) drain(ctx context.Context) error {
	for _, p := range s.partitions {
		p.next = 0
		for p.next < len(p.log) {
			n := min(len(p.log)-p.next, ledger.MaxChunk)
			if err := s.register(ctx, n, []*partition{p}); err != nil {
				return err
			}
		}
	}
	s.commit()
	return nil
}

// follower is the reference beside the ledger under test.
type follower struct {
	ref *Reference
	now time.Time
}

func newFollower() *follower {
	f := &follower{}
	f.ref = NewReference(func() time.Time { return f.now })
	f.ref.gates[apiScope] = ledger.GateAPI
	f.ref.count(apiScope, ledger.New, 1) // feedByAPI
	return f
}

func (f *follower) open(ctx context.Context, p *partition) error {
	if _, err := f.ref.OpenPosition(ctx, p.key, p.claim, p.w, nil); err != nil {
		return err
	}
	row, _, err := f.ref.Claim(ctx, p.key, p.claim)
	if err != nil {
		return err
	}
	if row.D != p.d {
		return fmt.Errorf("%s: D is %s, by the reference %s", p.key.Partition, p.d, row.D)
	}
	return nil
}

// compare gives the reference the same chunk at the same time. The reference
// numbers its own seq, so the chunk's is taken out.
func (f *follower) compare(ctx context.Context, h *history, c *ledger.Chunk, a *ledger.Answer, places []place) {
	f.now = a.Now
	same := *c
	same.Advances = append([]ledger.Advance(nil), c.Advances...)
	for i := range same.Advances {
		same.Advances[i].Seq = 0
	}
	want, err := f.ref.Register(ctx, &same)
	if err != nil {
		h.wrong("the reference refuses a chunk that was taken: %w", err)
		return
	}
	for i := range places {
		r := &places[i].p.log[places[i].i]
		fresh := !r.reg.Origin.At().Less(places[i].p.d)
		if !sameResult(&a.Results[i], &want.Results[i], fresh) {
			h.wrong("%s at %s: answered %s, by the reference %s",
				r.reg.Origin.At(), a.Now.Format(clockFormat), tell(&a.Results[i]), tell(&want.Results[i]))
		}
	}
}

// compareAccounts is exact, corrections included: a single session leaves no
// doubt about which row a record met, and when. An account at zero is none.
func (f *follower) compareAccounts(h *history, got Accounts) {
	for account, want := range f.ref.accounts {
		for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Drift, ledger.Invalid} {
			if got[account][v] != want[v] {
				h.wrong("account %s counts %v, by the reference %v", account, got[account], want)
				break
			}
		}
	}
}

// sameResult leaves out what a redelivery may be told otherwise: how many
// repeats there are by now.
func sameResult(a, b *ledger.Result, fresh bool) bool {
	return a.Entry.Scope == b.Entry.Scope && a.Entry.Key == b.Entry.Key && sameRow(&a.Entry, &b.Entry) &&
		a.Inserted == b.Inserted && a.Refused == b.Refused && a.Matched == b.Matched &&
		(!fresh || a.Repeat == b.Repeat && a.Copy == b.Copy && a.Entry.DriftCount == b.Entry.DriftCount)
}
