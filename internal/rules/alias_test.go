package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// An interchange of which gateways tell a transport id too.
const aliasedOrder = "UNB+UNOC:3+A+B+261102:0930+77001'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+77001'"

// toldBy gives the headers of a record.
func toldBy(headers map[string]string) func(string, int) ([]byte, bool) {
	return func(name string, back int) ([]byte, bool) {
		value, ok := headers[name]
		return []byte(value), ok && back == 0
	}
}

// TestAliases: every key found beside the primary one is an alias, once, in the order
// of the setting; a rule for the primary key decides scope, window and date of all.
func TestAliases(t *testing.T) {
	t.Parallel()
	k := NewKeyer(newSet(t, true,
		"match=acme:two aliases=[as2 rest]",
		"match=acme:dated key=edifact:* with_date=true window=1d namespace=b2b",
		"match=acme:dated extractors=[header auto] aliases=[edifact as2]",
		"match=acme:header extractors=[edifact] aliases=[header]",
		"match=acme:none aliases=[]",
		"match=acme:once extractors=[header] aliases=[edifact auto]",
		"match=acme:* aliases=[as2]"))
	both := map[string]string{"message-id": "<1@a>", "as2-from": "A", "idempotency-key": `"r/1"`, "x-client-id": "c"}
	with := func(name, value string) map[string]string {
		return map[string]string{name: value, "message-id": "<1@a>", "as2-from": "A"}
	}
	for name, c := range map[string]struct {
		flow    string
		headers map[string]string
		key     string
		aliases []string
	}{
		"two, in order":            {"two", both, "edifact:A/B/77001", []string{"as2:A/1@a", "rest:c/r%2F1"}},
		"the one that is there":    {"two", with("x", ""), "edifact:A/B/77001", []string{"as2:A/1@a"}},
		"none there":               {"two", nil, "edifact:A/B/77001", nil},
		"the primary is no alias":  {"as2", map[string]string{"dedup-key": "as2:A/1@a", "message-id": "1@a", "as2-from": "A"}, "as2:A/1@a", nil},
		"dated, as the primary is": {"dated", with("x", ""), "edifact:A/B/77001/261102", []string{"as2:A/1@a"}},
		"by the primary's rule":    {"dated", with("dedup-key", "7"), "hdr:7", []string{"edifact:A/B/77001", "as2:A/1@a"}},
		"an explicit one":          {"header", with("dedup-key", "a/b"), "edifact:A/B/77001", []string{"hdr:a%2Fb"}},
		"one key of two":           {"once", with("dedup-key", "7"), "hdr:7", []string{"edifact:A/B/77001"}},
		"a blank one is none":      {"header", with("dedup-key", " "), "edifact:A/B/77001", nil},
		"exempt":                   {"none", both, "edifact:A/B/77001", nil},
	} {
		keyed := k.Key(topics.Scope{Tenant: "acme", Flow: c.flow}, []byte(aliasedOrder), toldBy(c.headers))
		require.Empty(t, keyed.Code, name)
		require.Equal(t, c.key, keyed.Key.Key, name)
		require.Equal(t, c.aliases, keyed.Aliases, name)
		require.LessOrEqual(t, len(keyed.Aliases), ledger.MaxAliases)
	}
	keyed := k.Key(topics.Scope{Tenant: "acme", Flow: "two"}, []byte("no key"), toldBy(both))
	require.Equal(t, ledger.Keyed{Code: "key.not_found", HashMode: "raw"}, keyed, "an alias is no key of its own")
}

// TestPeppolAlias: by the built-in rule an invoice is known by its own number and by
// the envelope's; an envelope of something else by its only one.
func TestPeppolAlias(t *testing.T) {
	t.Parallel()
	k := NewKeyer(newSet(t, true))
	key := func(flow, document string) ledger.Keyed {
		const envelope = `<StandardBusinessDocument xmlns="http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"><StandardBusinessDocumentHeader>` +
			`<Sender><Identifier>0088:1</Identifier></Sender><DocumentIdentification><InstanceIdentifier>i-1</InstanceIdentifier></DocumentIdentification>` +
			`</StandardBusinessDocumentHeader>DOCUMENT</StandardBusinessDocument>`
		return k.Key(topics.Scope{Tenant: "acme", Flow: flow}, []byte(strings.Replace(envelope, "DOCUMENT", document, 1)), nil)
	}
	const invoice = `<i:Invoice xmlns:i="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:b="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2" ` +
		`xmlns:a="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"><b:ID>7</b:ID><b:IssueDate>2026-11-02</b:IssueDate>` +
		`<a:AccountingSupplierParty><a:Party><b:EndpointID schemeID="0088">1</b:EndpointID></a:Party></a:AccountingSupplierParty></i:Invoice>`
	keyed := key("peppol", invoice)
	require.Equal(t, ledger.Key{Scope: "acme:peppol", Key: "ubl:inv/ep:0088:1/7/2026-11-02", Window: 90 * 24 * time.Hour}, keyed.Key)
	require.Equal(t, []string{"sbdh:0088%3A1/i-1"}, keyed.Aliases)
	keyed = key("as4", invoice)
	require.Empty(t, keyed.Aliases, "another flow")
	keyed = key("peppol", "<x/>")
	require.Equal(t, "sbdh:0088%3A1/i-1", keyed.Key.Key)
	require.Empty(t, keyed.Aliases)
}

// TestNoAllocationForAliases: a flow without any pays nothing for those of others.
func TestNoAllocationForAliases(t *testing.T) { //nolint:paralleltest // counts allocations of the process
	value, header := []byte(aliasedOrder), toldBy(nil)
	allocs := func(texts ...string) float64 {
		k := NewKeyer(newSet(t, true, texts...))
		return testing.AllocsPerRun(100, func() { k.Key(topics.Scope{Tenant: "acme", Flow: "edi"}, value, header) })
	}
	require.InDelta(t, allocs(), allocs("match=acme:other aliases=[as2]"), 0)
	f, _ := newSet(t, true, "match=acme:other aliases=[as2]").Flow("acme:edi")
	require.Zero(t, testing.AllocsPerRun(100, func() { f.furtherKeys(nil, "", true) }))
}
