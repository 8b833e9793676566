package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestOneKeyThreeTimesInOnePoll: F07. The first by offset is clean, the second
// SEEN, the one with other bytes DRIFT; one row, two sightings.
// Fault card: F17.
func TestOneKeyThreeTimesInOnePoll(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	b.produce(t,
		order("acme:edifact", "1", 5), order("acme:edifact", "1", 5), order("acme:edifact", "1", 6),
		order("acme:edifact", "2", 5))
	// One session: another one that joins would interrupt the batch, which comes again.
	f := b.start(t, 0, "DEDUP_PROCESSOR_SESSIONS=1", "DEDUP_PROCESSOR_BATCH_WAIT=2s")
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 2, "SEEN": 1, "DRIFT": 1}, b.statuses(t))
	polls, err := f.metric(t.Context(), "dedup_batch_records_count")
	require.NoError(t, err)
	require.InDelta(t, 1, polls, 0, "polls that brought records")
	require.Equal(t, "2 1", ask[string](t, b, `select retry_count || ' ' || drift_count from dedup_ledger where key like '%/1'`))
	require.Equal(t, "SEEN  DRIFT open", ask[string](t, b,
		`select string_agg(status || ' ' || coalesce(state, ''), ' ' order by origin_offset) from dedup_sighting`))
	f.term(t)
	b.checkStopped(t)
}

// TestScopesThatCannotBeRead: every one is a dead letter with its payload, and
// the good ones between them flow.
// Fault card: F08.
func TestScopesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	var batch []message
	bad := []string{
		noKey, "", "acme", ":", "acme:", ":edifact", "acme:edi:fact", "acme edi:fact", "ac\x00me:edifact", "acme:\xff\xfe",
		"ä:edifact", strings.Repeat("a", 41) + ":edifact", "acme:" + strings.Repeat("b", 41), strings.Repeat("long", 30000) + ":x",
	}
	for _, scope := range bad {
		m := order(scope, "1", 5)
		m.Partition, m.Want = 0, want{Code: "scope.malformed"}
		batch = append(batch, m, order("acme:edifact", "good", 5))
	}
	batch = append(batch, order(strings.Repeat("a", 40)+":"+strings.Repeat("b", 40), "1", 5))
	b.produce(t, batch...)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 2, "SEEN": len(bad) - 1, "INVALID": len(bad)}, b.statuses(t))
	require.Equal(t, len(bad), ask[int](t, b, `select count(*) from dedup_sighting where reason = 'scope.malformed' and state = 'open'`))
	f.term(t)
	b.checkStopped(t)
}

// TestOddKeys: F08 and F18. Blank keys are no keys; any other byte is encoded;
// words that look empty are keys like others.
func TestOddKeys(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	invalid := func(key []byte, code string) message {
		return message{
			Key: "acme:rest", Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "dedup-key", Value: key}},
			Want: want{Code: code},
		}
	}
	as := func(key, becomes string) message {
		m := keyed("acme:rest", key, []byte("x"))
		m.Partition, m.Want = 0, want{Key: becomes}
		return m
	}
	edi := func(control string, key []byte) message {
		m := withHeader(order("acme:edifact", control, 5), "dedup-key", key)
		m.Partition = 0
		return m
	}
	b.produce(t,
		invalid([]byte(""), "header.empty_key"), as("null", "hdr:null"),
		invalid([]byte(" \t\r\n"), "header.empty_key"), as("0000", "hdr:0000"),
		invalid(nil, "header.empty_key"), as("0", "hdr:0"),
		invalid([]byte(strings.Repeat("k", 4097)), "header.key_too_long"),
		message{Key: "acme:rest", Value: []byte("x"), Want: want{Code: "key.not_found"}},
		as("a\x00b", "hdr:a%00b"), as("ab", "hdr:ab"), as("a\x00b", "hdr:a%00b"),
		as(" a b ", "hdr:a%20b"), as("\xff/:~", "hdr:%FF%2F%3A%7E"),
		// A blank key leaves the word to the payload.
		edi("1", []byte("  ")), edi("1", []byte("")), edi("2", nil), edi("2", []byte("\t")),
	)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 9, "SEEN": 3, "INVALID": 5}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// TestOddHeaders: F11. The last dedup-key counts, in any case; empty names, nil
// values and repeats of foreign headers pass as they came.
func TestOddHeaders(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	with := func(value []byte, becomes string, headers ...kgo.RecordHeader) message {
		return message{Key: "acme:rest", Value: value, Headers: headers, Want: want{Key: becomes}}
	}
	h := func(key, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: key, Value: []byte(value)} }
	b.produce(t,
		with([]byte("1"), "hdr:b", h("dedup-key", "a"), h("dedup-key", "b")),
		with([]byte("1"), "hdr:b", h("DEDUP-Key", "b")),
		with([]byte("1"), "hdr:c", h("dedup-key", "a"), h("x", "1"), h("Dedup-KEY", "c")),
		with([]byte("2"), "hdr:d", h("", "empty name"), kgo.RecordHeader{Key: "nil"}, h("", ""), h("dedup-key", "d"), h("x", "1"), h("X", "2"), h("x", "1")),
		with([]byte("3"), "hdr:e", h("dedup-key", "e"), h("a\x00b", "\x00"), h("\xff\xfe", "\xff"), h(strings.Repeat("n", 300), strings.Repeat("v", 3000))),
		with([]byte("4"), "hdr:f", h("dedup-key", "f"), h("dedup-", "forged"), h("dedup-unknown", "forged"), h("Dedup-Status", "SEEN"), h("dedupe", "mine")),
		with(nil, "hdr:g", h("dedup-key", "g")),
		with([]byte{}, "hdr:g", h("dedup-key", "g")),
		with(nil, "hdr:g", h("dedup-key", "g")),
		with([]byte("x"), "hdr:g", h("dedup-key", "g")),
		message{Key: "acme:edifact", Value: nil, Want: want{Code: "empty_payload"}},
		message{Key: noKey, Value: nil, Headers: []kgo.RecordHeader{{}}, Want: want{Code: "scope.malformed"}},
	)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 6, "SEEN": 3, "DRIFT": 1, "INVALID": 2}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// TestSourceService: NUL and broken UTF-8 become U+FFFD in the tables, cut to 40
// characters; the header itself passes untouched.
// Fault card: F08.
func TestSourceService(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	with := func(key string, value []byte) message {
		m := withHeader(keyed("acme:rest", key, []byte("x")), "source-service", value)
		m.Partition = 0
		return m
	}
	b.produce(t,
		with("nul", []byte("gw\x00-1")), with("broken", []byte("g\xffw\xc3")), with("long", []byte(strings.Repeat("ü", 60))),
		with("emoji", []byte(strings.Repeat("\U0001F4E6", 41))), with("plain", []byte("as2-gw-1")), with("empty", nil),
		with("cut", []byte(strings.Repeat("\x00", 100))),
		withHeader(with("twice", []byte("first")), "Source-Service", []byte("last")),
		with("plain", []byte("\x00resent")))
	b.check(t)
	stored := map[string]string{}
	require.NoError(t, b.query(t.Context(), `select substr(key, 5), coalesce(source_service, '(null)') from dedup_ledger`, func(r pgx.Rows) error {
		var key, source string
		err := r.Scan(&key, &source)
		stored[key] = source
		return err
	}))
	require.Equal(t, map[string]string{
		"nul": "gw\ufffd-1", "broken": "g\ufffdw\ufffd", "long": strings.Repeat("ü", 40), "emoji": strings.Repeat("\U0001F4E6", 40),
		"plain": "as2-gw-1", "empty": "(null)", "cut": strings.Repeat("\ufffd", 40), "twice": "last",
	}, stored)
	require.Equal(t, "\ufffdresent", ask[string](t, b, `select source_service from dedup_sighting`))
	f.term(t)
	b.checkStopped(t)
}

// TestTwoTenantsOneKey: tenants do not see each other; flows of one tenant do
// only where a rule gives them one namespace.
// Fault card: F20.
func TestTwoTenantsOneKey(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Flows: `- {match: "shared:*", namespace: hub}`})
	f := b.start(t, 0)
	in := func(scope, ledgerScope string) message {
		m := order(scope, "1", 5)
		m.Want.Scope = ledgerScope
		return m
	}
	b.produce(t,
		in("acme:edifact", ""), in("beta:edifact", ""), in("acme:as2", ""), in("beta:edifact", ""),
		in("ACME:edifact", ""), in("shared:edifact", "shared:hub"), in("shared:as2", "shared:hub"), in("shared:sftp", "shared:hub"))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 5, "SEEN": 3}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// TestWindowExpiryThenReuse: a window counts from the first acceptance, a resend
// does not prolong it, and behind its end the key is free.
// Fault card: F23.
func TestWindowExpiryThenReuse(t *testing.T) {
	t.Parallel()
	const window = 2 * time.Second
	b := newBundle(t, setup{Partitions: 1, Flows: `- {match: "acme:short", window: 2s}`})
	f := b.start(t, 0)
	short := func(value string) message {
		m := keyed("acme:short", "again", []byte(value))
		m.Want.Window = window
		return m
	}
	k := b.track(t)
	for i := range 3 {
		b.produce(t, short("1"), short("1"), short("2"))
		k.awaitCount(t, 3*i+3)
		b.awaitSQL(t, `select clock_timestamp() > max(expires_at) from dedup_ledger`)
	}
	// Copies all the time, over several ends of windows.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 60 {
		<-tick.C
		b.produce(t, short("1"))
	}
	b.check(t)
	n := b.statuses(t)
	require.GreaterOrEqual(t, n["NEW"], 5)
	require.Equal(t, 3, n["DRIFT"])
	f.term(t)
	b.checkStopped(t)
}
