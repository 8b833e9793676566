package demo

import (
	"fmt"
	"math/rand/v2"

	"dedupledger/ledger"
)

// The sums of part 2. They never change: what comes out of it can be compared
// with a number known beforehand.
const (
	distinct = 8000
	resends  = 2000
)

// message is one record to send and what must come of it.
type message struct {
	scope     string // tenant:flow, the record key
	partition int32
	key       string // dedup key; "" where it has none
	value     []byte
	want      ledger.Verdict
}

// partner sends one format for one tenant. All of a partner's messages go
// through one partition, as those of one record key do.
type partner struct {
	scope     string
	partition int32
	make      func(n int) (key string, value []byte)
}

// partners are as many as partitions: six tenants, two formats.
func partners() []partner {
	var all []partner
	for i, tenant := range []string{"acme", "beta", "gamma", "delta", "omega", "sigma"} {
		number, name := gln(i), fmt.Sprintf("PARTNER%d", i)
		all = append(all,
			partner{tenant + ":edifact", int32(2 * i), func(n int) (string, []byte) {
				control := fmt.Sprintf("D%07d", n)
				if n%2 == 0 {
					return edifactKey(number, control), invoice(number, control, 1+n%9)
				}
				return edifactKey(number, control), orders(number, control, 1+n%9)
			}},
			partner{tenant + ":x12", int32(2*i + 1), func(n int) (string, []byte) {
				if n%2 == 0 {
					return x12Key(name, n), x12Invoice(name, n, 1+n%9)
				}
				return x12Key(name, n), purchaseOrder(name, n, 1+n%9)
			}},
		)
	}
	return all
}

// original is the nth distinct message of all partners in turn.
func original(all []partner, n int) message {
	p := all[n%len(all)]
	key, value := p.make(n)
	return message{scope: p.scope, partition: p.partition, key: key, value: value, want: ledger.New}
}

// traffic is distinct messages with resends among them: a third right behind
// the original, where both fall into one poll and often into one transaction,
// the rest at any distance. The seed is fixed, so every run sends the same.
func traffic() []message {
	r := rand.New(rand.NewPCG(7, 7001)) //nolint:gosec // no secret
	all := partners()
	out := make([]message, 0, distinct+resends)
	sent := make([]message, 0, distinct)
	for left := resends; len(out) < cap(out); {
		slots := cap(out) - len(out)
		if len(sent) > 0 && r.IntN(slots) < left {
			again := sent[r.IntN(len(sent))]
			if r.IntN(3) == 0 {
				again = sent[len(sent)-1]
			}
			again.want = ledger.Seen
			out = append(out, again)
			left--
			continue
		}
		m := original(all, len(sent))
		sent, out = append(sent, m), append(out, m)
	}
	return out
}

// onceMore is every distinct message again.
func onceMore() []message {
	all := partners()
	out := make([]message, 0, distinct)
	for n := range distinct {
		m := original(all, n)
		m.want = ledger.Seen
		out = append(out, m)
	}
	return out
}

// onePerPartition are further new messages, one for each partition.
func onePerPartition() []message {
	all := partners()
	out := make([]message, 0, len(all))
	for n := range all {
		out = append(out, original(all, distinct+n))
	}
	return out
}
