package processor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	first := ledger.Origin{Gate: ledger.GateKafka, Partition: 1, Offset: 7}
	other := ledger.Origin{Gate: ledger.GateKafka, Partition: 1, Offset: 8}
	key := []ledger.Key{{Scope: "acme:as2", Key: "hdr:1"}}
	a, b := [32]byte{1}, [32]byte{2}
	cases := []struct {
		name   string
		reg    ledger.Registration
		res    ledger.Result
		want   ledger.Verdict
		reason string
	}{
		{
			"first",
			ledger.Registration{Origin: first, Keys: key, PayloadSHA256: a, HashMode: ledger.HashRaw},
			ledger.Result{Entry: ledger.Entry{Origin: first, PayloadSHA256: a, HashMode: ledger.HashRaw}},
			ledger.New, "",
		},
		{
			"redelivery of the first, whatever the hash",
			ledger.Registration{Origin: first, Keys: key, PayloadSHA256: b, HashMode: ledger.HashRaw},
			ledger.Result{Entry: ledger.Entry{Origin: first, PayloadSHA256: a, HashMode: ledger.HashRaw}},
			ledger.New, "",
		},
		{
			"repeat",
			ledger.Registration{Origin: other, Keys: key, PayloadSHA256: a, HashMode: ledger.HashRaw},
			ledger.Result{Entry: ledger.Entry{Origin: first, PayloadSHA256: a, HashMode: ledger.HashRaw}},
			ledger.Seen, "",
		},
		{
			"changed",
			ledger.Registration{Origin: other, Keys: key, PayloadSHA256: b, HashMode: ledger.HashRaw},
			ledger.Result{Entry: ledger.Entry{Origin: first, PayloadSHA256: a, HashMode: ledger.HashRaw}},
			ledger.Drift, "",
		},
		{
			"hashes of two modes are not compared",
			ledger.Registration{Origin: other, Keys: key, PayloadSHA256: b, HashMode: "edi"},
			ledger.Result{Entry: ledger.Entry{Origin: first, PayloadSHA256: a, HashMode: ledger.HashRaw}},
			ledger.Seen, ledger.ReasonNotComparable,
		},
		{"no key", ledger.Registration{Origin: first, Reason: "key.not_found"}, ledger.Result{}, ledger.Invalid, "key.not_found"},
		{"refused by the ledger", ledger.Registration{Origin: first, Keys: key}, ledger.Result{Refused: "scope.fed_by_api"}, ledger.Invalid, "scope.fed_by_api"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, reason := decide(&c.reg, &c.res)
			require.Equal(t, c.want, v)
			require.Equal(t, c.reason, reason)
		})
	}
}

func TestNarrowing(t *testing.T) {
	t.Parallel()
	p, q := &part{}, &part{}
	items := func(p *part, offsets ...int64) []item {
		var is []item
		for _, o := range offsets {
			is = append(is, item{part: p, reg: &ledger.Registration{Origin: ledger.Origin{Offset: o}}})
		}
		return is
	}
	var n narrowing
	require.Equal(t, 2000, n.limit(2000))
	n.failed(&batch{items: append(items(p, 0, 1, 2), items(q, 5)...)})
	require.Equal(t, 2, n.limit(2000))
	n.committed(&batch{items: items(p, 0, 1)})
	require.Equal(t, 2, n.limit(2000), "the fault may still lie ahead")
	n.failed(&batch{items: items(p, 2)})
	require.Equal(t, 1, n.limit(2000))
	n.committed(&batch{items: items(p, 2)})
	require.Equal(t, 2000, n.limit(2000), "all of the suspected stretch has passed")
	n.failed(&batch{items: items(q, 5, 6)})
	n.forget(q)
	require.Equal(t, 2000, n.limit(2000), "a partition that went elsewhere holds nobody up")
}

func TestOmits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verdict ledger.Verdict
		copy    int64
		copies  int64
		omits   bool
		none    bool // payload: none
	}{
		{ledger.Seen, 1, 20, false, false},
		{ledger.Seen, 20, 20, false, false},
		{ledger.Seen, 21, 20, true, false},
		{ledger.Drift, 1, 20, false, false},
		{ledger.Drift, 21, 20, true, false},
		{ledger.Seen, 1, 0, true, false},
		{ledger.Drift, 1, 0, true, false},
		{ledger.Seen, 1, 20, true, true},
		{ledger.Drift, 1, 20, true, true},
		{ledger.New, 0, 20, false, true},
		{ledger.Invalid, 0, 20, false, true},
		{ledger.New, 0, 0, false, false},
		{ledger.Invalid, 0, 0, false, false},
	} {
		require.Equal(t, c.omits, omits(c.verdict, &ledger.Result{Copy: c.copy}, c.none, c.copies), "%+v", c)
	}
}
