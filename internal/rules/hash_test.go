package rules

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// TestHash: a rule's mode makes a second hash beside the raw one, by which line ends
// are no drift and a quantity is; what the mode cannot read has the raw one alone.
func TestHash(t *testing.T) {
	t.Parallel()
	const order = "UNB+UNOC:3+4098765000014:14+4012345000023:14+261102:0930+77001'UNH+1+ORDERS:D:96A:UN'QTY+21:5'UNT+3+1'UNZ+1+77001'"
	wrapped := strings.ReplaceAll(order, "'", "'\r\n")
	changed := strings.Replace(order, "21:5", "21:6", 1)
	k := NewKeyer(newSet(t, true, "match=acme:edi hash=edi", "match=acme:xml hash=c14n"))
	registered := func(flow, text string) *ledger.Registration {
		keyed := k.Key(topics.Scope{Tenant: "acme", Flow: flow}, []byte(text), nil)
		require.Empty(t, keyed.Code)
		return &ledger.Registration{
			Origin: ledger.Origin{Offset: int64(len(text))}, HashMode: keyed.HashMode, CanonicalSHA256: keyed.CanonicalSHA256, PayloadSHA256: sha256.Sum256([]byte(text)),
		}
	}
	for _, c := range []struct {
		flow, second, mode string
		verdict            ledger.Verdict
		reason             string
	}{
		{"edi", wrapped, "edi/1", ledger.Seen, ""},
		{"edi", changed + " ", "edi/1", ledger.Drift, "hash.edi/1"},
		{"raw", wrapped, "raw", ledger.Drift, ""},
		{"xml", wrapped, "raw", ledger.Drift, ""}, // no XML
	} {
		first, second := registered(c.flow, order), registered(c.flow, c.second)
		require.Equal(t, c.mode, second.HashMode)
		v, reason := ledger.Judge(second, &ledger.Entry{
			Origin: first.Origin, PayloadSHA256: first.PayloadSHA256, CanonicalSHA256: first.CanonicalSHA256, HashMode: first.HashMode,
		})
		require.Equal(t, c.verdict, v, c.flow)
		require.Equal(t, c.reason, reason)
	}
	// A rule that was changed: hashes of two modes are not compared.
	first, second := registered("raw", order), registered("edi", wrapped)
	v, reason := ledger.Judge(second, &ledger.Entry{Origin: first.Origin, PayloadSHA256: first.PayloadSHA256, HashMode: first.HashMode})
	require.Equal(t, ledger.Seen, v)
	require.Equal(t, ledger.ReasonNotComparable, reason)
}

// TestLaterModes: a mode that the documentation knows and this version has not is
// refused by its name, with those that there are.
func TestLaterModes(t *testing.T) {
	t.Parallel()
	for mode, why := range map[string]string{
		"edi-ignore-time": "not available yet", "c14n-ws": "not available yet", "jcs": "not available yet", "mask": "not available yet",
		"md5": "no such mode", "edi/1": "no such mode", "": "no such mode",
	} {
		_, err := New([]Rule{rule(t, 3, "match=*:* hash="+mode)}, true)
		require.EqualError(t, err, `dedup.yaml:4: flows[3].hash: "`+mode+`": `+why+`; write raw, edi, c14n, mime-parts, mime-payload`)
	}
}
