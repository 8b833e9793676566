package msgkey_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

func addVectors(f *testing.F, format string) {
	f.Helper()
	for _, v := range readVectors(f) {
		if v.Format != format {
			continue
		}
		value, err := base64.StdEncoding.DecodeString(v.Payload)
		require.NoError(f, err)
		f.Add(value)
	}
}

// checkPayload states what holds for every input of a payload extractor: it
// agrees with the reference, its key is canonical and within the limit, its
// code is of the closed list, and the default chain agrees.
func checkPayload(t *testing.T, name string, value []byte, reference func(string) string) {
	before := bytes.Clone(value)
	key, code := keyOf(t, name, value)
	msgkey.Interchanges(value)
	require.Equal(t, before, value, "the value was changed")
	if bytes.HasPrefix(value, []byte("\xFE\xFF")) || bytes.HasPrefix(value, []byte("\xFF\xFE")) {
		require.NotEmpty(t, code)
		return
	}
	require.Equal(t, reference(string(value)), key, "code %q", code)
	chain, err := msgkey.NewChain(msgkey.Header, msgkey.Auto)
	require.NoError(t, err)
	m := &msgkey.Message{Value: value}
	found, _ := chain.Extract(m)
	loose, err := msgkey.Options{Lenient: true, EDIFACTMessages: true, X12Level: msgkey.X12Transactions}.NewChain(name)
	require.NoError(t, err)
	for _, f := range loose.Attempts(m)[0].Fields {
		require.Less(t, f.Offset, len(value))
	}
	require.Equal(t, before, value, "the value was changed")
	if key != "" {
		require.Equal(t, key, found.Key)
		requireRoundTrip(t, key)
		requireRoundTrip(t, found.KeyWithDate())
		require.NotEqual(t, key, found.KeyWithDate())
	}
}

func FuzzEDIFACT(f *testing.F) {
	addVectors(f, "edifact")
	f.Add([]byte(released))
	f.Add([]byte("UNA:+.? \nUNB+UNOA:1+A+H+D+1\nUNZ+0+1\n\n"))
	f.Add([]byte("UNB+UNOA:1+A+H+D+1++++++1'UN\r\nZ+0+1'UNA"))
	f.Add([]byte("UNB+UNOA+A+H++1'\x00UNZ++1'"))
	f.Add([]byte("UNB+AAA0+0+0++77001'UNZ:++77001'"))
	f.Fuzz(func(t *testing.T, value []byte) { checkPayload(t, msgkey.EDIFACT, value, refEDIFACT) })
}

func FuzzX12(f *testing.F) {
	addVectors(f, "x12")
	f.Add([]byte(invoice))
	f.Add([]byte(invoiceWith("SE*2", "BIN*22*~ISA*~IEA*1*000000001~~BDS*ASC*1*~~SE*2")))
	f.Add([]byte(invoiceWith("~", "\xE2\x80\xA6")))
	f.Add([]byte("ISA\r"))
	f.Fuzz(func(t *testing.T, value []byte) { checkPayload(t, msgkey.X12, value, refX12) })
}

func FuzzHeader(f *testing.F) {
	for _, v := range []string{"", " \t", "ORD-1", "edifact:a/b/1", "op:release/x/0/5", "hdr:%2F", "hdr:%2f", "a\x00b", strings.Repeat("k", 4097)} {
		f.Add([]byte(v))
	}
	f.Add([]byte("hdr:" + strings.Repeat("k", 110) + "~" + strings.Repeat("0", 64)))
	f.Fuzz(func(t *testing.T, value []byte) {
		key, code := msgkey.Explicit(value)
		trimmed := strings.Trim(string(value), " \t\r\n")
		switch {
		case len(value) > msgkey.MaxExplicit:
			require.Equal(t, msgkey.HeaderKeyTooLong, code)
		case trimmed == "":
			require.Equal(t, msgkey.HeaderEmptyKey, code)
		case msgkey.Canonical([]byte(trimmed)):
			require.Equal(t, trimmed, key)
		default:
			require.Empty(t, code)
			require.Equal(t, msgkey.Encode("hdr", msgkey.Field{trimmed}), key)
		}
		if code == "" {
			requireRoundTrip(t, key)
			require.True(t, msgkey.Canonical([]byte(key)))
			require.NotContains(t, key, "\x00")
		}
	})
}

// FuzzEncode compares two keys of up to three fields; "\n" separates fields
// and "\t" parts.
func FuzzEncode(f *testing.F) {
	f.Add("a\tb\nc", "a:b/c")
	f.Add("a\t\t\n", "a\n")
	f.Add("%41", "A")
	f.Add(strings.Repeat("\x00", 70), strings.Repeat("\x00", 71))
	f.Fuzz(func(t *testing.T, a, b string) {
		left, right := fieldsOf(a), fieldsOf(b)
		x, y := msgkey.Encode("hdr", left...), msgkey.Encode("hdr", right...)
		require.Equal(t, slices.EqualFunc(left, right, slices.Equal[msgkey.Field]), x == y, "%q and %q", x, y)
		require.LessOrEqual(t, len(x), msgkey.MaxKey)
		if x != "hdr:" {
			requireRoundTrip(t, x)
		}
	})
}

func fieldsOf(s string) []msgkey.Field {
	var fields []msgkey.Field
	for field := range strings.SplitSeq(s, "\n") {
		fields = append(fields, withoutEmptyEnd(strings.Split(field, "\t")))
	}
	return fields
}
