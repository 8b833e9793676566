package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
	"dedupledger/ledger"
	"dedupledger/topics"
	"dedupledger/topics/msgkey"
)

const interchange = "UNB+UNOC:3+4098765000014:14+4012345000023:14+261102:0930+77001'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+77001'"

func on[T any](value T) rules.Setting[T] { return rules.Setting[T]{Value: value, Set: true} }

func TestKeyer(t *testing.T) {
	t.Parallel()
	set, err := rules.New([]rules.Rule{
		{
			Match: on("acme:edifact"), Key: on("edifact:4098765000014:14/4012345000023:14/77001"),
			Window: on(setting.Day), WithDate: on(true), Namespace: on("edi"),
		},
		{Match: on("acme:header-only"), Extractors: on([]string{msgkey.Header})},
		{Match: on("acme:*")},
	}, false)
	require.NoError(t, err)
	keyer := rules.NewKeyer(set)
	header := func(name string, _ int) ([]byte, bool) { return []byte("7"), name == "dedup-key" }
	for _, c := range []struct {
		tenant, flow string
		header       func(string, int) ([]byte, bool)
		key          ledger.Key
		code         string
	}{
		// The glob is matched against the key without the date, which is appended then.
		{"acme", "edifact", nil, ledger.Key{
			Scope: "acme:edi", Key: "edifact:4098765000014:14/4012345000023:14/77001/261102", Window: setting.Day,
		}, ""},
		{"acme", "other", nil, ledger.Key{
			Scope: "acme:other", Key: "edifact:4098765000014:14/4012345000023:14/77001", Window: rules.DefaultWindow,
		}, ""},
		{"acme", "other", header, ledger.Key{Scope: "acme:other", Key: "hdr:7", Window: rules.DefaultWindow}, ""},
		{"acme", "header-only", nil, ledger.Key{}, "key.not_found"},
		{"beta", "other", header, ledger.Key{}, "flow.unknown"},
	} {
		keyed := keyer.Key(topics.Scope{Tenant: c.tenant, Flow: c.flow}, []byte(interchange), c.header)
		require.Equal(t, c.code, keyed.Code)
		require.Equal(t, c.key, keyed.Key)
	}
}

func BenchmarkKey(b *testing.B) {
	set, err := rules.New(nil, true)
	require.NoError(b, err)
	keyer, scope, value := rules.NewKeyer(set), topics.Scope{Tenant: "acme", Flow: "edifact"}, []byte(interchange)
	none := func(string, int) ([]byte, bool) { return nil, false }
	b.ReportAllocs()
	for b.Loop() {
		keyer.Key(scope, value, none)
	}
}
