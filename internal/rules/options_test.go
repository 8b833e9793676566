package rules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// TestOptionsReachTheChain: what each setting says is what the extractors are
// given, and the first rule that sets it wins.
func TestOptionsReachTheChain(t *testing.T) {
	t.Parallel()
	s := newSet(t, true,
		"match=acme:* lenient=true message_level=group",
		"match=acme:a sellers=[ep vat] scheme=inv cxml_order=true message_level=message json_pointers=[/a /b/c] oftp1=true lenient=false",
		"match=*:* file_pattern=([0-9]+)")
	options := func(scope string) msgkey.Options {
		with := noOptions()
		for i := range s.rules {
			if r := &s.rules[i]; i == len(s.rules)-1 || !r.keyed && r.match.match(scope) {
				with.take(i, &r.Rule)
			}
		}
		return with.of(s.rules)
	}
	require.Equal(t, msgkey.Options{
		Lenient: true, Sellers: []msgkey.Seller{"ep", "vat"}, SharedInvoices: true, CXMLOrder: true, X12Level: msgkey.X12Groups,
		JSONPointers: []string{"/a", "/b/c"}, OFTP1Dates: true, FilePattern: "([0-9]+)",
	}, options("acme:a"))
	require.Equal(t, msgkey.Options{Sellers: msgkey.DefaultSellers(), FilePattern: "([0-9]+)"}, options("beta:a"))
	require.Equal(t, msgkey.Options{EDIFACTMessages: true, X12Level: msgkey.X12Transactions}, (&Rule{MessageLevel: builtin(LevelMessage)}).options())
}
