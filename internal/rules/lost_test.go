package rules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func TestFateOfLiveKeys(t *testing.T) {
	t.Parallel()
	was := newSet(t, true,
		"match=acme:edi extractors=[header edifact x12]",
		"match=acme:mixed extractors=[x12 edifact]",
		"match=acme:auto extractors=[auto]",
		"match=acme:envelopes extractors=[ubl sbdh]",
		"match=beta:* namespace=all")
	is := newSet(t, false,
		"match=acme:edi extractors=[header x12]",
		"match=acme:mixed extractors=[edifact x12] message_level=group",
		"match=acme:auto extractors=[edifact] with_date=true",
		"match=acme:same extractors=[header auto] window=1d",
		"match=acme:envelopes extractors=[edifact ubl] aliases=[sbdh]",
		"match=beta:* namespace=other")
	for _, c := range []struct {
		scope, flow, scheme string
		fate                Fate
		why                 string
	}{
		{"acme:edi", "edi", "edifact", Lost, "the chain header, x12 has no extractor for them"},
		{"acme:edi", "edi", "x12", Found, ""},
		{"acme:edi", "edi", "hdr", Found, ""},
		{"acme:mixed", "mixed", "edifact", Unsure, "message_level has changed"},
		{"acme:mixed", "mixed", "hdr", Lost, "the chain edifact, x12 has no extractor for them"},
		{"acme:auto", "auto", "edifact", Lost, "with_date is true now"},
		{"acme:auto", "auto", "x12", Lost, "the chain edifact has no extractor for them"},
		{"acme:same", "same", "edifact", Found, ""},
		{"acme:envelopes", "envelopes", "ubl", Unsure, "edifact is tried first now"},
		{"acme:envelopes", "envelopes", "sbdh", Found, ""}, // as an alias
		{"beta:all", "as2", "edifact", Lost, "they are looked for in ledger scope beta:other"},
		{"gone:as2", "as2", "edifact", Lost, "no rule speaks of gone:as2 any more"},
	} {
		fate, why := is.Fate(was, ledger.LiveKeys{Scope: c.scope, Flow: c.flow, Scheme: c.scheme})
		require.Equal(t, c.fate, fate, "%v", c)
		require.Equal(t, c.why, why)
	}
	swapped := newSet(t, true, "match=acme:mixed extractors=[edifact x12]")
	fate, why := swapped.Fate(was, ledger.LiveKeys{Scope: "acme:mixed", Flow: "mixed", Scheme: "x12"})
	require.Equal(t, Unsure, fate)
	require.Equal(t, "edifact is tried first now", why)
	fate, _ = swapped.Fate(was, ledger.LiveKeys{Scope: "acme:mixed", Flow: "mixed", Scheme: "edifact"})
	require.Equal(t, Found, fate, "what was tried before it is tried behind it now")
	fate, why = swapped.Fate(nil, ledger.LiveKeys{Scope: "acme:mixed", Flow: "mixed", Scheme: "x12"})
	require.Equal(t, Unsure, fate)
	require.Equal(t, "nobody knows which rules made them", why)
}
