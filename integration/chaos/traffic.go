package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/integration/laws"
)

// idHeader names each record: raw is read back, and what the sender knows of a
// record is found by it.
const idHeader = "chaos-id"

// booked is what the sender knows of a record.
type booked struct {
	message laws.Message
	at      time.Time
}

// traffic sends what a hub sees, and keeps the books.
type traffic struct {
	s   *stage
	rng *rand.Rand

	turn sync.Mutex // held while a batch is sent
	held []bool     // raw topics that nothing is sent to
	old  bool       // what the producer knows of topics is

	mu      sync.Mutex
	books   map[string]booked
	aborted int // records in transactions that were not committed, or perhaps not

	recent []laws.Message // of long windows, to be sent again
	n      int
	chain  int // of keys that lie near each other
}

func newTraffic(s *stage, seed uint64) *traffic {
	return &traffic{s: s, rng: rand.New(rand.NewPCG(seed, 1)), books: map[string]booked{}, held: make([]bool, len(s.raw))}
}

const (
	tick         = 100 * time.Millisecond
	rememberLast = 20_000
)

// run sends until ctx ends: by a plain producer, and now and then in a
// transaction, of which half are aborted. What was begun is finished.
func (t *traffic) run(ctx context.Context) error {
	c, err := t.producer()
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	every := time.NewTicker(tick)
	defer every.Stop()
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		if c, err = t.send(context.WithoutCancel(ctx), c, round); err != nil {
			return err
		}
	}
}

func (t *traffic) producer() (*kgo.Client, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(t.s.kafka.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(4<<20), kgo.MetadataMinAge(200*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("making a producer: %w", err)
	}
	return c, nil
}

// send sends one batch.
func (t *traffic) send(ctx context.Context, c *kgo.Client, round int) (*kgo.Client, error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.old {
		fresh, err := t.producer()
		if err != nil {
			return c, err
		}
		c.Close()
		c, t.old = fresh, false
	}
	batch := t.batch(max(1, t.s.o.rate/int(time.Second/tick)))
	var err error
	if round%20 == 19 {
		err = t.transact(ctx, batch, t.rng.IntN(2) == 0)
	} else {
		err = c.ProduceSync(ctx, t.records(batch)...).FirstErr()
	}
	if err != nil {
		return c, fmt.Errorf("sending traffic: %w", err)
	}
	return c, nil
}

// hold sends nothing to a raw topic any more: the others get its part. It returns
// when nothing is on the way.
func (t *traffic) hold(topic int, held bool) {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.held[topic] = held
}

// stop sends nothing at all until the traffic is let go. Topics may have changed
// meanwhile.
func (t *traffic) stop() (letGo func()) {
	t.turn.Lock()
	return func() {
		t.old = true
		t.turn.Unlock()
	}
}

// renew lets the producer learn what the topics are.
func (t *traffic) renew() {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.old = true
}

// transact sends a transaction and commits or aborts it. What became of one that
// a broker's end interrupted is told by raw.
func (t *traffic) transact(ctx context.Context, batch []laws.Message, commit bool) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(t.s.kafka.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID("sender-"+t.s.id), kgo.TransactionTimeout(10*time.Second), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(4<<20))
	if err != nil {
		return fmt.Errorf("making a producer: %w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := c.BeginTransaction(); err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	err = c.ProduceSync(ctx, t.records(batch)...).FirstErr()
	if err != nil {
		commit = false
	}
	err = errors.Join(err, c.EndTransaction(ctx, kgo.TransactionEndTry(commit)))
	if err != nil || !commit {
		t.mu.Lock()
		t.aborted += len(batch)
		t.mu.Unlock()
	}
	return nil
}

// records books the messages and makes records of them.
func (t *traffic) records(batch []laws.Message) (records []*kgo.Record) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range batch {
		m := &batch[i]
		t.n++
		id := fmt.Sprintf("%d", t.n)
		m.Headers = append([]kgo.RecordHeader{{Key: idHeader, Value: []byte(id)}}, m.Headers...)
		t.books[id] = booked{*m, now}
		r := &kgo.Record{
			Topic: t.s.raw[m.Topic], Partition: m.Partition, Key: []byte(m.Key), Value: m.Value,
			Headers: m.Headers, Timestamp: now.Truncate(time.Millisecond),
		}
		if m.Key == laws.NoKey {
			r.Key = nil
		}
		records = append(records, r)
	}
	return records
}

// batch draws messages: most of few scopes, a third of them copies, a few that
// changed, are broken or too large. They go to any partition of either topic.
func (t *traffic) batch(n int) (batch []laws.Message) {
	for len(batch) < n {
		var m laws.Message
		switch draw := t.rng.IntN(100); {
		case draw < 30:
			m = t.fresh()
		case draw < 40:
			m = t.aliased()
		case draw < 45:
			m = t.watched()
		case draw < 60 && len(batch) > 0:
			m = batch[t.rng.IntN(len(batch))] // at once
		case draw < 68 && len(t.recent) > 0:
			m = t.recent[t.rng.IntN(len(t.recent))]
		case draw < 72 && len(t.recent) > 0:
			m = t.changed()
		case draw < 90:
			m = t.short()
		case draw < 95:
			m = t.broken()
		case draw < 96:
			m = t.oversize()
		default:
			m = t.fresh()
		}
		m.Headers = foreign(m.Headers)
		m.Topic, m.Partition = t.place(t.rng.IntN(len(t.s.raw)), t.rng.IntN(1<<16))
		batch = append(batch, m)
	}
	return batch
}

// place is a partition of the topic drawn, or of the next that nobody holds.
func (t *traffic) place(topic, draw int) (int, int32) {
	for range t.held {
		if !t.held[topic] {
			break
		}
		topic = (topic + 1) % len(t.held)
	}
	return topic, int32(draw % t.s.width(t.s.raw[topic]))
}

// foreign leaves the id of an earlier copy out.
func foreign(headers []kgo.RecordHeader) (left []kgo.RecordHeader) {
	for _, h := range headers {
		if h.Key != idHeader {
			left = append(left, h)
		}
	}
	return left
}

// scope is skewed: half of all messages are of one.
func (t *traffic) scope() int {
	n := 0
	for n < 7 && t.rng.IntN(2) == 0 {
		n++
	}
	return n
}

func (t *traffic) fresh() laws.Message {
	n := t.rng.IntN(1 << 40)
	scope := t.scope()
	m := laws.Order(fmt.Sprintf("t%d:edifact", scope), fmt.Sprintf("%d", n), 5)
	if t.rng.IntN(3) == 0 {
		m = laws.Keyed(fmt.Sprintf("t%d:rest", scope), fmt.Sprintf("k-%d", n), bytes.Repeat([]byte("x"), 1+t.rng.IntN(600)))
	}
	t.remember(m)
	return m
}

func (t *traffic) remember(m laws.Message) {
	if len(t.recent) < rememberLast {
		t.recent = append(t.recent, m)
	} else {
		t.recent[t.rng.IntN(len(t.recent))] = m
	}
}

// near is how far the number and the alias of a message lie from those that were
// drawn last.
const near = 5

// aliased is an order that brings the id of its transport: with the number or the id
// of one just before, with both, crosswise, or with neither. So they form chains.
func (t *traffic) aliased() laws.Message {
	t.chain++
	number, id := t.chain+t.rng.IntN(near), fmt.Sprintf("id-%d", t.chain+t.rng.IntN(near))
	m := laws.Order(fmt.Sprintf("t%d:aliased", t.scope()), fmt.Sprintf("%d", number), 5)
	m.Headers = []kgo.RecordHeader{{Key: "dedup-key", Value: []byte(id)}}
	m.Want.Aliases = []string{"hdr:" + id}
	t.remember(m)
	return m
}

// watched is of a flow that is only observed: new, a copy of one just before, with
// other bytes perhaps, or without a key.
func (t *traffic) watched() laws.Message {
	scope := fmt.Sprintf("t%d:watched", t.scope())
	if t.rng.IntN(8) == 0 {
		return laws.Message{Key: scope, Value: []byte("no key"), Want: laws.Want{Code: "key.not_found", Observe: true}}
	}
	t.chain++
	m := laws.Keyed(scope, fmt.Sprintf("w-%d", t.chain+t.rng.IntN(near)), bytes.Repeat([]byte("w"), 1+t.rng.IntN(2)))
	m.Want.Observe = true
	t.remember(m)
	return m
}

// changed is a copy with another payload.
func (t *traffic) changed() laws.Message {
	m := t.recent[t.rng.IntN(len(t.recent))]
	m.Value = append(bytes.Clone(m.Value), '\n')
	return m
}

// short is a copy of one of few keys, whose windows end all the time.
func (t *traffic) short() laws.Message {
	m := laws.Keyed(fmt.Sprintf("s%d:short", t.rng.IntN(4)), fmt.Sprintf("again-%d", t.rng.IntN(25)), []byte("short"))
	m.Want.Window = shortFor
	return m
}

func (t *traffic) broken() laws.Message {
	if t.rng.IntN(2) == 0 {
		return laws.CutOrder(fmt.Sprintf("t%d:edifact", t.scope()), fmt.Sprintf("%d", t.rng.IntN(1<<40)))
	}
	m := laws.Order("no scope", "1", 5)
	m.Want = laws.Want{Code: "scope.malformed"}
	return m
}

func (t *traffic) oversize() laws.Message {
	m := laws.Keyed(fmt.Sprintf("t%d:rest", t.scope()), "large", bytes.Repeat([]byte("l"), largest+1+t.rng.IntN(1000)))
	m.Want = laws.Want{Code: "record.too_large"}
	return m
}

// book of a raw record.
func (t *traffic) book(id string) (booked, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.books[id]
	return b, ok
}
