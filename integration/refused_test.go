package integration

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// noise does not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// TestTooLargeAndLarge: above max_record_bytes a dead letter is a reference,
// below it a record is clean, also where raw took it compressed only.
func TestTooLargeAndLarge(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	b := newBundle(t, setup{Partitions: 1, Unprepared: true})
	env := []string{"DEDUP_TOPICS_MAX_RECORD_BYTES=1MiB"}
	b.migrate(t)
	b.createTopic(t, b.raw[0], map[string]string{"max.message.bytes": "33554432"})
	b.command(t, env, append([]string{"topics", "ensure"}, b.raw...)...)
	f := b.start(t, 0, env...)
	sized := func(key string, value []byte, code string) message {
		m := keyed("acme:rest", key, value)
		if m.Partition = 0; code != "" {
			m.Want = want{Code: code}
		}
		return m
	}
	b.produce(t,
		sized("before", []byte("x"), ""),
		sized("noise", noise(limit+1), "record.too_large"),
		sized("between", []byte("x"), ""),
		sized("zeros", make([]byte, 5*limit), "record.too_large"),
		sized("fits", noise(limit-100), ""),
		sized("fits", noise(limit-100), ""),
		sized("after", []byte("x"), ""))
	b.check(t)
	for _, n := range []int{1, 3} {
		require.Equal(t, "reference", header(b.outputOf(t, n).Record, "dedup-payload"))
	}
	require.Equal(t, map[string]int{"NEW": 4, "SEEN": 1, "INVALID": 2}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// TestLargeRecordTakenCompressed: a broker limits what is on the wire, so raw
// holds records that are larger than its limit.
func TestLargeRecordTakenCompressed(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1, Unprepared: true})
	b.migrate(t)
	b.createTopic(t, b.raw[0], map[string]string{"max.message.bytes": "1048576"})
	b.ensureTopics(t)
	f := b.start(t, 0)
	large := keyed("acme:rest", "large", bytes.Repeat([]byte("EDI "), 5<<20/4))
	b.produce(t, keyed("acme:rest", "small", []byte("x")), large, large, keyed("acme:rest", "small", []byte("x")))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 2, "SEEN": 2}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// ahead is a message whose record time lies two hours in the future.
func ahead(m message) message {
	m.Partition, m.Time = 0, time.Now().Add(2*time.Hour)
	return m
}

// TestTimestamps: topics of `ensure` take any record time, and what has waited
// in raw for long is filtered like anything else.
func TestTimestamps(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 3})
	f := b.start(t, 0)
	at := func(partition int32, ago time.Duration, m message) message {
		m.Partition, m.Time = partition, time.Now().Add(-ago)
		return m
	}
	b.produce(t,
		at(0, 0, order("acme:edifact", "1", 5)), ahead(order("acme:edifact", "2", 5)), ahead(order("acme:edifact", "2", 5)), ahead(cutOrder("acme:edifact", "3")),
		at(1, 48*time.Hour, order("acme:as2", "4", 5)), at(1, 47*time.Hour, order("acme:as2", "4", 5)), at(1, 0, order("acme:as2", "5", 5)))
	first := at(2, 0, order("acme:sftp", "6", 5))
	first.Time = time.UnixMilli(0)
	b.produce(t, first)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 5, "SEEN": 2, "INVALID": 1}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// oneHour is the limit of the broker's own that outputs may have.
var oneHour = map[string]string{"message.timestamp.after.max.ms": "3600000", "max.message.bytes": "33619968"}

// rejected is a message that an output refuses.
func rejected(m message) message {
	m = ahead(m)
	m.Want.Code = "output.rejected"
	return m
}

// TestOutputRefusesARecord: the refused record alone becomes INVALID, its row is
// closed, its neighbours flow, and the next copy of its key is NEW, be it in the
// same poll.
// Fault card: F24.
func TestOutputRefusesARecord(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1, Unprepared: true})
	b.migrate(t)
	b.createTopic(t, b.clean[0], oneHour)
	require.Contains(t, b.command(t, nil, "topics", "ensure", b.raw[0]), "message.timestamp.after.max.ms")
	var batch []message
	for i := range 40 {
		batch = append(batch, orders("acme:edifact", i, 1)...)
	}
	at := func(i int, m message) {
		m.Partition = 0
		batch[i] = m
	}
	at(10, rejected(order("acme:edifact", "x", 5)))
	at(30, order("acme:edifact", "x", 6)) // in the same poll: NEW, the first was never passed on
	at(50, order("acme:edifact", "x", 6))
	at(77, rejected(order("acme:edifact", "y", 5)))
	at(78, rejected(order("acme:edifact", "y", 5)))
	b.produce(t, batch...)
	f := b.start(t, 0)
	b.awaitOutputs(t)
	b.produce(t, order("acme:edifact", "y", 5), order("acme:edifact", "x", 5), rejected(order("acme:edifact", "z", 5)), order("acme:edifact", "z", 5))
	b.check(t)
	require.Equal(t, 4, b.statuses(t)["INVALID"])
	require.Equal(t, 4, ask[int](t, b, `select count(*) from dedup_ledger where closed_by = 'output.rejected' and closed_at is not null`))
	f.term(t)
	b.checkStopped(t)
}

// TestEveryOutputRefuses: duplicates and dead-letter have the broker's limit
// too: a dead letter that is refused becomes a reference with the present time.
func TestEveryOutputRefuses(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1, Unprepared: true})
	b.migrate(t)
	for _, name := range b.outputs() {
		b.createTopic(t, name, oneHour)
	}
	b.ensureTopics(t)
	bad := ahead(message{Key: "acme", Value: []byte("x"), Want: want{Code: "scope.malformed"}})
	b.produce(t,
		order("acme:edifact", "1", 5), rejected(order("acme:edifact", "2", 5)), order("acme:edifact", "2", 5),
		rejected(order("acme:edifact", "1", 5)), rejected(order("acme:edifact", "1", 6)), bad, order("acme:edifact", "3", 5),
		ahead(cutOrder("acme:edifact", "4")), order("acme:edifact", "1", 5))
	f := b.start(t, 0)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 3, "SEEN": 1, "INVALID": 5}, b.statuses(t))
	out := b.outputOf(t, 1)
	require.Equal(t, "reference", header(out.Record, "dedup-payload"))
	require.WithinDuration(t, time.Now(), out.Record.Timestamp, 5*time.Minute)
	f.term(t)
	b.checkStopped(t)
}

// TestKilledWhileHalving: what is known of a refused record before a kill is
// known after it.
// Fault card: F14.
func TestKilledWhileHalving(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Partitions: 2, Unprepared: true})
	b.migrate(t)
	b.createTopic(t, b.clean[0], oneHour)
	b.ensureTopics(t)
	batch := traffic(rng, "n", 400)
	for i := range batch {
		batch[i].Partition = int32(i % 2)
		if i%50 == 25 {
			batch[i] = rejected(order("acme:edifact", "r", i))
		}
	}
	b.produce(t, batch...)
	k := b.track(t)
	for _, outputs := range []int{rng.IntN(50) + 1, rng.IntN(100) + 100, rng.IntN(100) + 250} {
		f := b.start(t, 0)
		k.awaitCount(t, outputs)
		f.kill(t)
	}
	f := b.start(t, 0)
	b.awaitOutputs(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
