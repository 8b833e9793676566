package crash

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// Sizes in bytes. What is between cleanMax and deadMax is refused by clean and
// taken by dead-letter; what is between that and maxRecord dead-letter gets
// without its value, and what is above is judged before it is registered.
const (
	cleanMax     = 60_000
	deadMax      = 62_500
	maxRecord    = 70_000
	chunkRecords = 5
	partitions   = 3

	shortWindow = time.Second
	longWindow  = time.Hour
)

// Codes of INVALID records.
const (
	noKey    = "key.not_found"
	badScope = "scope.malformed"
	refused  = "output.rejected"
	rejected = "ledger.rejected"
)

// message is a raw record as its sender knows it.
type message struct {
	partition  int32
	scope, key string // key "": it has none
	aliases    string // a blank between two
	value      string
	code       string // why it is INVALID, or ""
}

// keyer takes the key from a header, so that no rules are needed. Keys that begin
// so have a window that a run outlives.
type keyer struct{}

const shortKey = "short"

// Key is the header's value in the scope.
func (k keyer) Key(s topics.Scope, _ []byte, header func(string, int) ([]byte, bool)) ledger.Keyed {
	v, ok := header(topics.HeaderKey, 0)
	if !ok {
		return ledger.Keyed{Code: noKey, HashMode: ledger.HashRaw, Observe: k.Observes(s)}
	}
	return ledger.Keyed{
		Key:      ledger.Key{Scope: s.String(), Key: keyPrefix + string(v), Window: windowOf(string(v))},
		Aliases:  aliasesOf(header),
		HashMode: ledger.HashRaw, Observe: k.Observes(s),
	}
}

// keyPrefix is of all keys.
const keyPrefix = "hdr:"

// aliasHeader has the aliases of a record, a blank between two.
const aliasHeader = "x-alias"

// aliasesOf are the header's words.
func aliasesOf(header func(string, int) ([]byte, bool)) (keys []string) {
	v, _ := header(aliasHeader, 0)
	for word := range strings.FieldsSeq(string(v)) {
		keys = append(keys, keyPrefix+word)
	}
	return keys
}

// watched is the flow that is only observed.
const watched = "watched"

// Observes is of mode: observe.
func (keyer) Observes(s topics.Scope) bool { return s.Flow == watched }

// LedgerScope is the scope itself.
func (keyer) LedgerScope(s topics.Scope, _ string) string { return s.String() }

func windowOf(key string) time.Duration {
	if strings.HasPrefix(key, shortKey) {
		return shortWindow
	}
	return longWindow
}

func (m *message) record(topic string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: m.partition, Key: []byte(m.scope), Value: []byte(m.value)}
	if m.key != "" {
		r.Headers = []kgo.RecordHeader{{Key: topics.HeaderKey, Value: []byte(m.key)}, {Key: aliasHeader, Value: []byte(m.aliases)}}
	}
	return r
}

// keys are the primary key and the aliases.
func (m *message) keys() []string { return append([]string{m.key}, strings.Fields(m.aliases)...) }

// shapes are what can be in a batch, by name.
var shapes = []string{
	"one record", "several of one key", "duplicates", "DRIFT", "INVALID", "several chunks", "mixed partitions", "window over",
	"empty", "redelivered", "aliases", "aliases of those before", oversize, reference, rejectedShape,
}

const (
	oversize      = "oversize, halved"
	reference     = "oversize for dead-letter too"
	rejectedShape = "rejected by the ledger"
)

// fresh is a message with a key that nobody has sent.
func (l *lane) fresh() message {
	l.keys++
	m := message{scope: l.scopes[l.keys%len(l.scopes)], key: fmt.Sprintf("k%d", l.keys), value: fmt.Sprintf("payload %d", l.keys), partition: l.part(l.keys)}
	return m
}

// part is a partition for the nth key.
func (l *lane) part(n int) int32 { return int32(n % partitions) }

// again is a copy of one that was sent before. Where PostgreSQL is put back a key
// keeps its partition: another one that does not learn yet could take a copy for
// the first (ARCHITECTURE §2, law 2).
func (l *lane) again() message {
	if len(l.known) == 0 {
		return l.fresh()
	}
	m := l.known[len(l.known)-1-l.number(min(len(l.known), 50))]
	if !l.learns {
		m.partition = l.part(l.number(partitions))
	}
	return m
}

// batch makes the messages of a shape.
func (l *lane) batch(shape string) (ms []message) {
	switch shape {
	case "several of one key":
		m := l.fresh()
		ms = []message{m, m, m, m}
	case "duplicates":
		ms = []message{l.again(), l.again(), l.again(), l.fresh()}
	case "DRIFT":
		m := l.again()
		m.value += " changed"
		n := l.fresh()
		o := n
		o.value += " changed"
		ms = []message{m, n, o, n}
	case "INVALID":
		ms = []message{l.fresh(), l.invalid(), l.fresh(), l.invalid()}
	case "several chunks":
		for range 2*chunkRecords + 1 {
			ms = append(ms, l.fresh())
			ms[len(ms)-1].partition = 0
		}
		ms = append(ms, ms[0], ms[chunkRecords])
	case "mixed partitions":
		for i := range 2 * partitions {
			m := l.fresh()
			ms = append(ms, m)
			if !l.learns {
				m.partition = l.part(i + 1)
			}
			ms = append(ms, m)
		}
	case "window over":
		for i := range 3 {
			ms = append(ms, message{scope: l.scopes[0], key: shortKey + fmt.Sprint(i), value: "of a window", partition: l.part(i)})
		}
	case oversize:
		m := l.fresh()
		small := m
		m.value, m.code = strings.Repeat("x", cleanMax+1000), refused
		m.aliases, small.aliases = m.key+"-a", m.key+"-a"
		n, o := l.fresh(), small
		n.partition = m.partition
		o.key += "-o" // of a key that goes with it
		ms = []message{n, m, small, o}
	case reference:
		m := l.fresh()
		m.value, m.code = strings.Repeat("x", deadMax+500), refused
		ms = []message{m, l.fresh()}
	case rejectedShape:
		m := l.fresh()
		m.key, m.code = "poison"+m.key, rejected
		ms = []message{l.fresh(), m, l.fresh()}
	case "aliases":
		ms = l.chain(l.fresh())
	case "aliases of those before":
		m := l.again()
		n := m
		n.key += "-n" // a key of its own, and those of a message that was sent long ago
		ms = append(l.chain(m), n, m)
	case "redelivered":
		ms = []message{l.fresh(), l.again(), l.fresh()}
	default:
		ms = []message{l.fresh()}
	}
	return ms
}

// chain are messages after m that share keys with it and with each other, some by
// an alias only, some with other bytes. Which of them is the first of a key goes by
// what became of those before.
func (l *lane) chain(m message) []message {
	with := func(key, aliases string, changed bool) message {
		n := m
		n.key, n.aliases = key, aliases
		if changed {
			n.value += " changed"
		}
		if !l.learns {
			n.partition = l.part(l.number(partitions))
		}
		return n
	}
	l.keys++
	p, a := fmt.Sprintf("k%d", l.keys), fmt.Sprintf("a%d", l.keys)
	m.aliases = a + "1"
	return []message{
		m, with(p+"2", a+"1", false), with(p+"2", a+"2", true), with(p+"3", a+"2 "+a+"1", false), with(a+"1", "", true), with(p+"4", a+"3 "+p+"2", false),
	}
}

// invalid is a message that cannot be judged. Where PostgreSQL is put back its
// scope can be read: the account of the others is not the lane's own.
func (l *lane) invalid() message {
	m := l.fresh()
	kinds := 3
	if l.learns {
		kinds = 2
	}
	switch l.number(kinds) {
	case 0:
		m.key, m.code = "", noKey
	case 1:
		m.value, m.code = strings.Repeat("x", maxRecord), topics.CodeRecordTooLarge
	default:
		m.scope, m.code = "nonsense", badScope
	}
	return m
}
