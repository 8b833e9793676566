package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/stretchr/testify/require"
)

// requireBothHashes: a changed resend tells its own hash and that of the first.
func (b *bundle) requireBothHashes(t *testing.T, nth, first int) {
	t.Helper()
	r, books := b.outputOf(t, nth).Record, b.books()
	require.Equal(t, "DRIFT", header(r, "dedup-status"))
	for name, value := range map[string][]byte{"dedup-payload-sha256": books[nth].Value, "dedup-first-payload-sha256": books[first].Value} {
		sum := sha256.Sum256(value)
		require.Equal(t, hex.EncodeToString(sum[:]), header(r, name), name)
	}
	require.Equal(t, books[nth].Value, r.Value, "the changed payload")
}

// TestSameIDOtherBytes: one id comes again with one digit changed, with other
// line ends, with its JSON keys in another order, and as it was. Only the last is
// a duplicate; of the others nothing is lost, and the ledger shows them as open.
// Fault card: F17.
func TestSameIDOtherBytes(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	edi := func(value string) message {
		m := order("acme:edifact", "1", 5)
		m.Partition, m.Value = 0, []byte(value)
		return m
	}
	first := string(order("acme:edifact", "1", 5).Value)
	json := func(value string) message {
		m := keyed("acme:rest", "j", []byte(value))
		m.Partition = 0
		return m
	}
	b.produce(t,
		edi(first),
		edi(strings.Replace(first, "QTY+21:5", "QTY+21:6", 1)),
		edi(strings.ReplaceAll(first, "\n", "\r\n")),
		edi(first),
		json(`{"id":1,"total":"10.00"}`),
		json(`{"total":"10.00","id":1}`),
		json(`{"id":1,"total":"10.00"}`))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 2, "SEEN": 2, "DRIFT": 3}, b.statuses(t))
	for nth, first := range map[int]int{1: 0, 2: 0, 5: 4} {
		b.requireBothHashes(t, nth, first)
	}
	require.Equal(t, 3, ask[int](t, b, `select count(*) from dedup_sighting s join dedup_ledger l using (scope, key)
		where s.status = 'DRIFT' and s.state = 'open' and s.payload_sha256 <> l.payload_sha256`))
	f.term(t)
	b.checkStopped(t)
}

// interchange is an ORDERS interchange of a counter, as its two sides identify
// themselves.
func interchange(sender, receiver string, counter, quantity int, window time.Duration) message {
	control := fmt.Sprintf("%09d", counter)
	value := strings.NewReplacer(laws.EDISender+":14+"+laws.EDIReceiver+":14", sender+"+"+receiver).Replace(string(order("", control, quantity).Value))
	return message{
		Key: "acme:counter", Value: []byte(value),
		Want: want{Key: "edifact:" + sender + "/" + receiver + "/" + control, Window: window},
	}
}

// TestControlNumbers: a counter is a partner's with a partner, whatever else has
// the same number; it wraps from 999999999 to 1, and is set back within the
// window with new contents, which are told as changed and not thrown away; and
// when the window has passed the number is new.
// Fault card: F23.
func TestControlNumbers(t *testing.T) {
	t.Parallel()
	const window = 20 * time.Second // the messages before its end take one poll
	b := newBundle(t, setup{Partitions: 1, Flows: `- {match: "acme:counter", window: 20s}`})
	f := b.start(t, 0)
	const we, you, they = "WE:ZZ", "YOU:ZZ", "THEY:ZZ"
	b.produce(t,
		interchange(we, you, 999999999, 5, window),
		interchange(we, you, 1, 5, window), // wrapped
		interchange(we, they, 1, 5, window),
		interchange("WE:14", you, 1, 5, window), // the same id of another register
		interchange("WE", you, 1, 5, window),
		interchange(we, you, 1, 6, window), // set back, new contents
		interchange(we, you, 1, 5, window))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 5, "SEEN": 1, "DRIFT": 1}, b.statuses(t))
	b.requireBothHashes(t, 5, 1)
	b.awaitSQL(t, `select max(expires_at) < clock_timestamp() from dedup_ledger`)
	b.produce(t, interchange(we, you, 1, 7, window))
	b.check(t)
	require.Equal(t, "NEW", b.outputOf(t, 7).Status())
	f.term(t)
	b.checkStopped(t)
}

// TestOneSecondApart: without Redis and over both sides of a month's end, where a
// unique index would have to contain the time.
// Fault card: F05.
func TestOneSecondApart(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2, Redis: "127.0.0.1:1", Flows: `- {match: "acme:long", window: 400d}`})
	f := b.start(t, 0)
	same := func(partition int32) message {
		m := keyed("acme:long", "k", []byte("x"))
		m.Partition, m.Want.Window = partition, 400*24*time.Hour
		return m
	}
	b.produce(t, same(0))
	b.awaitOutputs(t)
	b.awaitSQL(t, `select clock_timestamp() > max(first_seen_at) + interval '1 second' from dedup_ledger`)
	b.produce(t, same(1))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 1, "SEEN": 1}, b.statuses(t))

	b.asOwner(t, `select dedup_month_1(now() - interval '1 month')`)
	b.asOwner(t, `update dedup_ledger set first_seen_at = date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' - interval '1 second'`)
	b.produce(t, same(0), same(1))
	b.awaitOutputs(t)
	require.Equal(t, map[string]int{"NEW": 1, "SEEN": 3}, b.statuses(t), "also of a row of the month before")
	f.term(t)
}
