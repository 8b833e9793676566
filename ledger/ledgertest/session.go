package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"dedupledger/ledger"
)

const group = "dedup"

// record is one raw record from its poll to its commit.
type record struct {
	reg    ledger.Registration
	result ledger.Result // of its last registration
	row    *row          // likewise; nil: INVALID or refused
	// counted is the verdict of its first registration: accounts count a record
	// once, whatever its redelivery comes to.
	counted ledger.Verdict
	verdict ledger.Verdict // of its last registration
}

// partition is a raw partition as a session works on it: a log of records
// behind what is committed.
type partition struct {
	key   ledger.PositionKey
	made  traffic
	log   []record // log[0] is the first uncommitted record
	next  int      // log[:next] are polled
	claim ledger.Claim
	seq   int64
	d, w  ledger.Position
}

func newPartition(rng *rand.Rand, topic byte, number int32) *partition {
	at := ledger.Partition{Topic: ledger.TopicID{topic, 0xdd}, Partition: number}
	return &partition{
		key:  ledger.PositionKey{Partition: at, Topic: fmt.Sprintf("raw-ingest.t%d", topic), Group: group},
		made: traffic{rng: rng, at: at, next: ledger.Position{Epoch: 1}},
		w:    ledger.Position{Epoch: 1},
	}
}

// open takes the partition over as a new session does: a fresh claim, the row
// made if there is none, and everything uncommitted polled again.
func (p *partition) open(ctx context.Context, under Ledger) error {
	p.claim = ledger.NewClaim()
	row, found, err := under.Claim(ctx, p.key, p.claim)
	if err == nil && !found {
		if _, err = under.OpenPosition(ctx, p.key, p.claim, p.w, nil); err == nil {
			row, found, err = under.Claim(ctx, p.key, p.claim)
		}
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", p.key.Partition, err)
	}
	if !found || row.Group != group || p.w.Less(row.W) || row.D.Less(p.d) || row.Seq < p.seq {
		return fmt.Errorf("open %s: row %+v, left seq %d D %s W %s", p.key.Partition, row, p.seq, p.d, p.w)
	}
	p.seq, p.d, p.next = row.Seq, row.D, 0
	return nil
}

// poll answers the indexes of up to n further records.
func (p *partition) poll(n int) (from, to int) {
	for len(p.log) < p.next+n {
		p.log = append(p.log, record{reg: p.made.record()})
	}
	from, p.next = p.next, p.next+n
	return from, p.next
}

// session works on some partitions, as the processor's does, with one chunk
// at a time.
type session struct {
	rng        *rand.Rand
	under      Ledger
	h          *history
	partitions []*partition
	// also is asked the same after each answer; nil where there is none.
	also  *follower
	clock ledger.Clock
	made  int // registrations
}

// place is a record of a chunk: its partition and its index in the log there.
type place struct {
	p *partition
	i int
}

// chunk polls about n records of some partitions, interleaved, in order within
// each.
func (s *session) chunk(n int, chosen []*partition) (ledger.Chunk, []place) {
	c := ledger.Chunk{Gate: ledger.GateKafka}
	var places []place
	for _, p := range chosen {
		from, to := p.poll(max(1, n/len(chosen)))
		for i := from; i < to; i++ {
			places = append(places, place{p, i})
		}
		c.Advances = append(c.Advances, ledger.Advance{
			Partition: p.key.Partition, Claim: p.claim, Seq: p.seq, D: p.d, W: p.w,
			NewD: p.log[to-1].reg.Origin.Next(),
		})
	}
	s.interleave(places)
	for _, at := range places {
		c.Registrations = append(c.Registrations, at.p.log[at.i].reg)
	}
	return c, places
}

// interleave mixes the partitions and keeps the order within each.
func (s *session) interleave(places []place) {
	order := make([]*partition, len(places))
	at := map[*partition]int{}
	for i := range places {
		order[i] = places[i].p
		if first, known := at[order[i]]; !known || places[i].i < first {
			at[order[i]] = places[i].i
		}
	}
	s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for i, p := range order {
		places[i] = place{p, at[p]}
		at[p]++
	}
}

// step is one chunk and what becomes of it.
func (s *session) step(ctx context.Context) error {
	n := 1 + s.rng.IntN(ledger.MaxChunk)
	if s.rng.IntN(4) == 0 {
		n = 1 + s.rng.IntN(12)
	}
	s.rng.Shuffle(len(s.partitions), func(i, j int) {
		s.partitions[i], s.partitions[j] = s.partitions[j], s.partitions[i]
	})
	if err := s.register(ctx, n, s.partitions[:1+s.rng.IntN(len(s.partitions))]); err != nil {
		return err
	}
	return s.outcome(ctx)
}

// register sends one chunk and hands the answer to the history.
func (s *session) register(ctx context.Context, n int, chosen []*partition) error {
	c, places := s.chunk(n, chosen)
	local := time.Now()
	a, err := s.under.Register(ctx, &c)
	if err != nil {
		return fmt.Errorf("register %d records: %w", len(places), err)
	}
	if len(a.Results) != len(places) || len(a.Seqs) != len(c.Advances) {
		return fmt.Errorf("%d results and %d seqs for %d records of %d partitions",
			len(a.Results), len(a.Seqs), len(places), len(c.Advances))
	}
	s.clock = ledger.Clock{Postgres: a.Now, Local: local}
	s.made += len(places)
	if s.also != nil {
		s.also.compare(ctx, s.h, &c, a, places)
	}
	for i, at := range places {
		r := &at.p.log[at.i]
		s.h.answer(r, a.Now, &a.Results[i], !r.reg.Origin.At().Less(at.p.d))
	}
	for i, adv := range c.Advances {
		s.advanced(adv, a.Seqs[i])
	}
	return nil
}

func (s *session) advanced(adv ledger.Advance, seq int64) {
	for _, p := range s.partitions {
		if p.key.Partition != adv.Partition {
			continue
		}
		if seq != p.seq+1 {
			s.h.wrong("seq %d after %d in %s", seq, p.seq, adv.Partition)
		}
		p.seq, p.d = seq, p.d.Max(adv.NewD)
	}
}

// outcome is what comes after the answer: the transaction commits; or more
// chunks come first; or it aborts, and everything uncommitted comes again with
// other borders; or another session takes over.
func (s *session) outcome(ctx context.Context) error {
	switch n := s.rng.IntN(100); {
	case n < 70:
		s.commit()
	case n < 80: // a batch of several chunks
	case n < 92:
		for _, p := range s.partitions {
			p.next = 0
		}
	case n < 96:
		return s.takeOver(ctx, s.partitions[s.rng.IntN(len(s.partitions))])
	default:
		return s.ahead(ctx, s.partitions[s.rng.IntN(len(s.partitions))])
	}
	return nil
}

func (s *session) commit() {
	var registrations []ledger.Registration
	var results []ledger.Result
	for _, p := range s.partitions {
		for i := range p.log[:p.next] {
			s.h.commit(&p.log[i])
			registrations = append(registrations, p.log[i].reg)
			results = append(results, p.log[i].result)
			p.w = p.log[i].reg.Origin.Next()
		}
		p.log = append(p.log[:0], p.log[p.next:]...)
		p.next = 0
	}
	s.under.Confirm(ledger.FactsOf(registrations, results), s.clock)
}

// takeOver claims a partition anew, then lets the old session send its chunk: a
// zombie that was stopped behind its poll. It is refused and nothing moves.
func (s *session) takeOver(ctx context.Context, p *partition) error {
	zombie := *p
	if err := s.open(ctx, p); err != nil {
		return err
	}
	return s.refused(ctx, p, ledger.Advance{Claim: zombie.claim, Seq: zombie.seq, D: zombie.d})
}

// ahead sends what a session would that knows a later seq or D than the row
// has: Postgres lost commits. It is refused.
func (s *session) ahead(ctx context.Context, p *partition) error {
	adv := ledger.Advance{Claim: p.claim, Seq: p.seq, D: p.d}
	if s.rng.IntN(2) == 0 {
		adv.Seq++
	} else {
		adv.D.Offset++
	}
	return s.refused(ctx, p, adv)
}

func (s *session) open(ctx context.Context, p *partition) error {
	if err := p.open(ctx, s.under); err != nil {
		return err
	}
	if s.also != nil {
		return s.also.open(ctx, p)
	}
	return nil
}

func (s *session) refused(ctx context.Context, p *partition, adv ledger.Advance) error {
	before := p.next
	from, to := p.poll(1 + s.rng.IntN(5))
	adv.Partition, adv.W, adv.NewD = p.key.Partition, p.w, p.log[to-1].reg.Origin.Next()
	c := ledger.Chunk{Gate: ledger.GateKafka, Advances: []ledger.Advance{adv}}
	for i := from; i < to; i++ {
		c.Registrations = append(c.Registrations, p.log[i].reg)
	}
	p.next = before
	if _, err := s.under.Register(ctx, &c); !errors.Is(err, ledger.ErrClaimLost) {
		return fmt.Errorf("a chunk of %s with a lost claim, or ahead of the row, was answered %w", adv.Partition, errOr(err))
	}
	return nil
}

var errTaken = errors.New("with success")

func errOr(err error) error {
	if err == nil {
		return errTaken
	}
	return err
}
