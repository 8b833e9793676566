package ledgertest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"dedupledger/ledger"
)

const (
	canonicalMode = "edi/1"
	keysPerScope  = 3000
	day           = 24 * time.Hour
)

// apiScope is fed by an API call before the first record, so Kafka records in it
// are refused (D1).
const apiScope = "tenant9:rest"

// flows are accounts and the ledger scopes their keys live in. Two flows of
// tenant1 share a namespace; two tenants have a flow of one name.
var flows = []struct{ account, scope string }{
	{"tenant1:as2", "tenant1:orders"},
	{"tenant1:as4", "tenant1:orders"},
	{"tenant2:as4", "tenant2:as4"},
	{"tenant3:as4", "tenant3:as4"},
	{"tenant4:sftp", "tenant4:sftp"},
}

// windows: some end while the test runs, some cross months, one is the longest.
var windows = []time.Duration{time.Second, time.Second, 2 * time.Second, 3 * time.Second, 40 * day, 400 * day}

// traffic makes the records of one raw partition, in order.
type traffic struct {
	rng  *rand.Rand
	at   ledger.Partition
	next ledger.Position
	// aliased: of the present stretch some records have aliases; of the others none.
	aliased bool
}

func (t *traffic) record() ledger.Registration {
	if t.rng.IntN(500) == 0 {
		t.next.Epoch++ // the partition has a new leader
	}
	if t.rng.IntN(200) == 0 {
		t.next.Offset += 1 + t.rng.Int64N(3) // control records, or compaction: a hole and no gap
	}
	flow := flows[t.rng.IntN(len(flows))]
	r := ledger.Registration{
		Origin: ledger.Origin{
			Gate: ledger.GateKafka, Topic: t.at.Topic, Partition: t.at.Partition,
			Epoch: t.next.Epoch, Offset: t.next.Offset,
		},
		Account:  flow.account,
		Bytes:    t.rng.Int64N(2000),
		HashMode: ledger.HashRaw,
	}
	t.next.Offset++
	switch n := t.rng.IntN(1000); {
	case n < 10:
		r.Account, r.Reason = ledger.UnreadableScope, "scope.malformed"
		return r
	case n < 30:
		r.Reason = "key.missing"
		return r
	case n < 35:
		flow.account, flow.scope = apiScope, apiScope
		r.Account = apiScope
	}
	if t.rng.IntN(4) == 0 {
		r.SourceService = "gateway-1"
	}
	key := t.key()
	r.Keys = []ledger.Key{{Scope: flow.scope, Key: key, Window: windows[t.rng.IntN(len(windows))]}}
	if t.rng.IntN(300) == 0 {
		t.aliased = !t.aliased
	}
	if t.aliased && t.rng.IntN(3) == 0 {
		t.aliases(&r)
	}
	t.payload(&r, key)
	return r
}

// aliases adds one or two. Few are drawn often, so that they meet, alone or beside
// a primary key that is met as well, and some are other records' primary keys.
func (t *traffic) aliases(r *ledger.Registration) {
	for range 1 + t.rng.IntN(ledger.MaxAliases) {
		alias := r.Keys[0]
		switch t.rng.IntN(4) {
		case 0:
			alias.Key = t.key()
		case 1:
			alias.Key = fmt.Sprintf("sbdh:%d", t.rng.IntN(60))
		default:
			alias.Key = fmt.Sprintf("sbdh:%d", t.rng.IntN(20_000))
		}
		if !slices.ContainsFunc(r.Keys, func(k ledger.Key) bool { return k.Key == alias.Key }) {
			r.Keys = append(r.Keys, alias)
		}
	}
}

// key draws some keys often: repeats within a chunk, between writers and after
// the end of a window all come from that.
func (t *traffic) key() string {
	n := t.rng.IntN(keysPerScope)
	switch t.rng.IntN(10) {
	case 0:
		n %= 20
	case 1, 2:
		n %= 300
	default:
		n = keysPerScope + t.rng.IntN(1<<20)
	}
	key := fmt.Sprintf("hdr:%07d", n)
	if n%97 == 0 {
		key += strings.Repeat("x", 200-len(key))
	}
	return key
}

// payload draws the first content mostly, else one that drifts, else one that
// differs in raw form only.
func (t *traffic) payload(r *ledger.Registration, key string) {
	content, form := 0, 0
	if t.rng.IntN(6) == 0 {
		content = 1 + t.rng.IntN(2)
	}
	if t.rng.IntN(6) == 0 {
		form = 1
	}
	r.PayloadSHA256 = hash(key, content, form)
	if t.rng.IntN(3) == 0 {
		r.HashMode = canonicalMode
		r.CanonicalSHA256 = hash(key, content, -1)
	}
}

func hash(key string, content, form int) [32]byte {
	b := binary.BigEndian.AppendUint32([]byte(key), uint32(content))
	b = binary.BigEndian.AppendUint32(b, uint32(form))
	return sha256.Sum256(b)
}

// feedByAPI makes apiScope an API caller's.
func (l Load) feedByAPI(ctx context.Context, under Ledger, h *history) error {
	r := ledger.Registration{
		Origin:        ledger.Origin{Gate: ledger.GateAPI, Client: "local", Attempt: "1"},
		Account:       apiScope,
		Keys:          []ledger.Key{{Scope: apiScope, Key: "hdr:1", Window: day}},
		PayloadSHA256: hash("hdr:1", 0, 0),
		HashMode:      ledger.HashRaw,
	}
	a, err := under.Register(ctx, &ledger.Chunk{Gate: ledger.GateAPI, Registrations: []ledger.Registration{r}})
	if err != nil {
		return fmt.Errorf("register by API: %w", err)
	}
	rec := record{reg: r}
	h.answer(&rec, a.Now, &a.Results[0], true)
	h.commit(&rec)
	return nil
}
