package msgkey_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// TestHostileHeads runs what would be slow or large if work were not linear and
// memory not bounded. It is not parallel: it counts what is allocated. The
// control is the size: anything quadratic would not end.
func TestHostileHeads(t *testing.T) { //nolint:paralleltest // counts allocations
	const mb = 1 << 20
	multipart := func(boundary string) map[string]string {
		return map[string]string{"content-type": "multipart/related; boundary=" + boundary}
	}
	repeat := func(s string, size int) string { return strings.Repeat(s, size/len(s)) }
	soap := "--B\r\nContent-Type: text/xml\r\n\r\n" + userEnvelope + "\r\n"
	large := soap + "--B\r\n\r\n" + repeat("payload octets ", 30*mb) + "\r\n--B--\r\n"
	pointers := msgkey.Options{JSONPointers: []string{"/a"}}
	for _, c := range []struct {
		name, extractor, value string
		headers                map[string]string
		code                   msgkey.Code
	}{
		{"a message of 30 MB", "as4", large, multipart("B"), ""},
		{"a boundary of 16 MB", "as4", soap, multipart(repeat("B", 16*mb)), msgkey.AS4BadMultipart},
		{"a first line of 8 MB", "as4", "--" + repeat("B", 8*mb), nil, msgkey.AS4BadMultipart},
		{"header lines without end", "as4", repeat("A: b\n", 8*mb), nil, msgkey.AS4NoSOAPPart},
		{"a part's header without end", "as4", "--B\r\n" + repeat("A: b\n", 8*mb) + "\n\n--B--", multipart("B"), msgkey.AS4BadMultipart},
		{"parameters without end", "as4", soap, map[string]string{"content-type": "multipart/related" + repeat("; a=\"b\\\"", mb)}, msgkey.AS4BadMultipart},
		{"delimiters within lines", "as4", soap + repeat("x--B", 8*mb), multipart("B"), msgkey.AS4BadMultipart},
		{"parts without end", "as4", soap + repeat("--B\n\n", 8*mb) + "--B--", multipart("B"), ""},
		{"blanks behind delimiters", "as4", soap + repeat("\n--B"+strings.Repeat(" ", 1000)+"x", 8*mb), multipart("B"), msgkey.AS4BadMultipart},
		{"an envelope in 8 MB of base64", "as4", "--B\nContent-Transfer-Encoding: base64\n\n" + repeat("AAAA", 8*mb) + "\n--B--", multipart("B"), msgkey.AS4NoSOAPPart},
		{"a document of 8 MB", "json", `{"x":"` + repeat("text ", 8*mb) + `","a":1}`, nil, ""},
		{"brackets", "json", `{"a":` + repeat("[", 8*mb), nil, msgkey.JSONNotJSON},
		{"brackets at the limit", "json", `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}", nil, msgkey.JSONNotScalar},
		{"members without end", "json", `{"a":1` + repeat(`,"b":2`, 8*mb) + "}", nil, ""},
		{"escapes", "json", `{"` + repeat(`\\`, 4*mb) + `":"` + repeat(`\"`, 4*mb) + `","a":1}`, nil, ""},
		{"an id of 8 MB", "as2", "", map[string]string{"message-id": repeat("i", 8*mb), "as2-from": "A"}, msgkey.AS2BadMessageID},
		{"a command of 8 MB", "oftp2", "", map[string]string{"oftp2-sfid": repeat("SEhI", 8*mb)}, msgkey.OFTP2BadSFID},
		{"a key of 8 MB", "rest", "", map[string]string{"idempotency-key": `"` + repeat("k", 8*mb) + `"`, "x-client-id": "A"}, msgkey.RESTKeyTooLong},
	} {
		chain, err := pointers.NewChain(c.extractor)
		require.NoError(t, err)
		m := message([]byte(c.value), c.headers)
		m.Header = fixed(c.headers)
		var code msgkey.Code
		used := allocated(func() { code = chain.Attempts(m)[0].Code })
		require.Equal(t, c.code, code, c.name)
		require.Less(t, used, uint64(2*mb), c.name)
	}
	for _, c := range []struct {
		name, mode, value string
		ok                bool
	}{
		{"EDIFACT", "edi", strings.Replace(orders, "UNT", repeat("LIN+1++4000862141404:EN'\n", 8*mb)+"UNT", 1), true},
		{"blanks behind segments", "edi", strings.Replace(orders, "UNT", repeat("A'\n", mb)+"UNT", 1) + repeat(" ", 8*mb), true},
		{"a component of 8 MB", "edi", strings.Replace(orders, "UNT", "FTX+"+repeat("1", 8*mb)+"'UNT", 1), true},
		{"X12", "edi", strings.Replace(invoice, "SE*", repeat("IT1*1*10*EA*2.50~\n", 8*mb)+"SE*", 1), true},
		{"blanks behind segments of X12", "edi", strings.Replace(invoice, "SE*", repeat("A~\n", mb)+"SE*", 1) + repeat(" ", 8*mb), true},
		{"XML", "c14n", "<a xmlns='urn:u'>" + repeat(`<b c="1">text</b>`, 8*mb) + "</a>", true},
		{"comments", "c14n", "<a>" + repeat("<!---->", 8*mb) + "</a>" + repeat("<!---->", mb) + repeat(" ", 8*mb), true},
		{"an attribute of 8 MB", "c14n", "<a b='" + repeat("x", 8*mb) + "'/>", false},
		{"MIME", "mime-parts", large, true},
		{"MIME, base64", "mime-payload", soap + "--B\r\nContent-Transfer-Encoding: base64\r\n\r\n" + repeat("QUJD", 8*mb) + "\r\n--B--\r\n", true},
	} {
		mode, err := msgkey.NewMode(c.mode)
		require.NoError(t, err)
		m, ok := &msgkey.Message{Value: []byte(c.value)}, false
		used := allocated(func() { _, ok = mode.Canonical(m) })
		require.Equal(t, c.ok, ok, c.name)
		require.Less(t, used, uint64(2*mb), c.name)
	}
}

// fixed answers without copies, unlike message.
func fixed(headers map[string]string) func(string, int) ([]byte, bool) {
	octets := map[string][]byte{}
	for name, value := range headers {
		octets[name] = []byte(value)
	}
	return func(name string, back int) ([]byte, bool) {
		value, ok := octets[name]
		return value, ok && back == 0
	}
}

// allocated is how many octets a call asks for, whether they are freed or not.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
