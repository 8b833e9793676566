package msgkey_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// moreHeadVectors are vectors of this project's own beside those of the
// specification, for the formats whose keys stand in headers, MIME or JSON.
func moreHeadVectors(t testing.TB) []vector {
	t.Helper()
	return readVectorsOf(t, "testdata/more-head-keys.jsonl")
}

// TestMoreHeadVectors runs them. Between both files each code of these formats
// has a vector of its own.
func TestMoreHeadVectors(t *testing.T) {
	t.Parallel()
	ran, told := map[string]int{}, map[msgkey.Code]bool{}
	for _, v := range moreHeadVectors(t) {
		ran[v.Format]++
		told[v.Code] = true
		v.run(t)
	}
	t.Logf("vectors run: %v", ran)
	for _, v := range readVectors(t) {
		told[v.Code] = true
	}
	for _, c := range msgkey.Codes() {
		if scheme, _, _ := strings.Cut(string(c), "."); slices.Contains(headBorne(), scheme) {
			require.True(t, told[c], "no vector ends with %s", c)
		}
	}
}

// headBorne lists the schemes of the formats of this file.
func headBorne() []string { return []string{"as4", "as2", "oftp2", "sftp", "rest", "json", "ce"} }

const userEnvelope = `<S:Envelope xmlns:S="http://www.w3.org/2003/05/soap-envelope"><S:Header>` +
	`<eb:Messaging xmlns:eb="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/"><eb:UserMessage>` +
	`<eb:MessageInfo><eb:MessageId>m1@c2.example</eb:MessageId></eb:MessageInfo>` +
	`<eb:PartyInfo><eb:From><eb:PartyId>POP1</eb:PartyId></eb:From></eb:PartyInfo></eb:UserMessage></eb:Messaging></S:Header></S:Envelope>`

// headCase is a message of each format with what identifies it.
type headCase struct {
	extractor, value string
	headers          map[string]string
	identity         []string // texts of the value and names of headers
}

func headCases() []headCase {
	return []headCase{
		{"as4", userEnvelope, nil, []string{"m1@c2.example", "POP1"}},
		{"as4", mimeOf("B", userEnvelope, "", "pay"), nil, []string{"m1@c2.example", "POP1"}},
		{"as2", "", map[string]string{"message-id": "<1@x>", "as2-from": "ACME"}, []string{"message-id", "as2-from"}},
		{
			"oftp2", "",
			map[string]string{"oftp2-dsn": "ORDERS", "oftp2-date": "20261102", "oftp2-time": "0930150001", "oftp2-orig": "O1", "oftp2-dest": "O2"},
			[]string{"oftp2-dsn", "oftp2-date", "oftp2-time", "oftp2-orig", "oftp2-dest"},
		},
		{"sftp", "content", map[string]string{"sftp-account": "acme", "sftp-filename": "a.edi"}, []string{"sftp-account", "sftp-filename", "content"}},
		{"rest", "", map[string]string{"idempotency-key": `"k1"`, "x-client-id": "acme"}, []string{"idempotency-key", "x-client-id"}},
		{"json", `{"a":"PO-7731","b":{"c":[47.11]}}`, nil, []string{"PO-7731", "47", "11"}},
		{"ce", "", map[string]string{"ce_specversion": "1.0", "ce_source": "/orders", "ce_id": "1a"}, []string{"ce_source", "ce_id"}},
		{"ce", `{"specversion":"1.0","source":"/orders","id":"1a"}`, map[string]string{"content-type": "application/cloudevents+json"}, []string{"/orders", "1a"}},
	}
}

// key of a case, or the code.
func (c headCase) key(t testing.TB) string {
	t.Helper()
	o := msgkey.Options{JSONPointers: []string{"/a", "/b/c/0"}}
	found, code := attemptWith(t, o, c.extractor, message([]byte(c.value), c.headers))
	return found.Key + string(code)
}

// TestHeadIdentifyingOctets changes each octet of what identifies a message;
// brackets and quotes around it are no part of it.
// Fault card: F23.
func TestHeadIdentifyingOctets(t *testing.T) {
	t.Parallel()
	for _, c := range headCases() {
		want := c.key(t)
		require.True(t, strings.HasPrefix(want, c.extractor+":"), want)
		for _, id := range c.identity {
			text, inHeader := c.headers[id]
			if !inHeader {
				text = id
			}
			for i := range text {
				if strings.IndexByte(`<>"`, text[i]) >= 0 {
					continue
				}
				other := []byte(text)
				other[i] = '7' + other[i]&1 // another one, and a digit where digits must be
				if other[i] == text[i] {
					other[i] = '6'
				}
				changed := c
				if inHeader {
					changed.headers = maps.Clone(c.headers)
					changed.headers[id] = string(other)
				} else {
					changed.value = strings.Replace(c.value, id, string(other), 1)
				}
				got := changed.key(t)
				require.True(t, strings.HasPrefix(got, c.extractor+":"), got)
				require.NotEqual(t, want, got, "%s with %s", id, other)
			}
		}
	}
}

// TestHeadTruncation cuts what has its key in the value at every octet.
func TestHeadTruncation(t *testing.T) {
	t.Parallel()
	for _, c := range headCases() {
		if c.value == "" {
			continue
		}
		want, complete := c.key(t), len(strings.TrimSuffix(c.value, "\r\n"))
		for cut := range len(c.value) {
			short := c
			short.value = c.value[:cut]
			if cut < complete {
				require.NotEqual(t, want, short.key(t), "%s cut at %d", c.extractor, cut)
			}
		}
	}
}

// TestHeadSameKey: another byte order mark, line ends, boundary, quotes.
func TestHeadSameKey(t *testing.T) {
	t.Parallel()
	cases := headCases()
	same := func(c headCase, value string, headers map[string]string) {
		t.Helper()
		want := c.key(t)
		c.value, c.headers = value, headers
		require.Equal(t, want, c.key(t))
	}
	mime := mimeOf("B", userEnvelope, "", "pay")
	same(cases[0], "\xEF\xBB\xBF\r\n<?xml version='1.0'?>"+userEnvelope+"\r\n", nil)
	same(cases[1], mimeOf("----=_Part_2", userEnvelope, "X: y\r\n", "other"), nil)
	same(cases[1], strings.ReplaceAll(mime, "\r\n", "\n"), nil)
	same(cases[1], "\xEF\xBB\xBF\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n boundary=B\r\n\r\n"+mime, nil)
	same(cases[2], "", map[string]string{"Message-ID": "\r\n 1@x\t", "AS2-From": ` "ACME" `})
	same(cases[3], "", map[string]string{"oftp2-dsn": "ORDERS ", "oftp2-date": "20261102", "oftp2-time": "0930150001", "oftp2-orig": "O1  ", "oftp2-dest": "O2 "})
	same(cases[4], "content", map[string]string{"sftp-account": "acme", "sftp-filename": `C:\in\a.edi.tmp`})
	same(cases[5], "", map[string]string{"idempotency-key": "k1", "x-client-id": " acme"})
	same(cases[6], "\xEF\xBB\xBF\r\n{\r\n \"b\": {\"c\": [ 47.11 ]},\r\n \"a\": \"PO\\u002d7731\"\r\n}\r\n", nil)
	same(cases[8], "\xEF\xBB\xBF{\r\n\"id\" : \"\\u0031a\", \"source\":\"\\/orders\", \"data\":{\"id\":1}, \"specversion\":\"1.0\"}", cases[8].headers)
}

// TestHeadKeysAreInjective draws fields over an alphabet that is rich in
// separators: no two messages share a key.
// Fault card: F08.
func TestHeadKeysAreInjective(t *testing.T) {
	t.Parallel()
	const seed = 11
	r := rand.New(rand.NewPCG(seed, seed))
	seen := map[string][2]string{}
	text := func() string {
		b := make([]byte, 1+r.IntN(4))
		for i := range b {
			b[i] = "a:/%~3A\\;=,"[r.IntN(11)]
		}
		return string(b)
	}
	for range 20_000 {
		a, b := text(), text()
		quoted, err := json.Marshal(map[string]any{"a": a, "b": map[string]any{"c": []string{b}}})
		require.NoError(t, err)
		for _, c := range []headCase{
			{extractor: "as2", headers: map[string]string{"message-id": b, "as2-from": a}},
			{extractor: "rest", headers: map[string]string{"idempotency-key": b, "x-client-id": a}},
			{extractor: "ce", headers: map[string]string{"ce_specversion": "1.0", "ce_source": a, "ce_id": b}},
			{extractor: "json", value: string(quoted)},
			{extractor: "oftp2", headers: map[string]string{"oftp2-orig": a, "oftp2-dest": "D", "oftp2-dsn": b, "oftp2-date": "20261102", "oftp2-time": "0930150001"}},
		} {
			key := c.key(t)
			if before, ok := seen[key]; ok {
				require.Equal(t, [2]string{a, b}, before, "key %q, seed %d", key, seed)
			}
			require.True(t, strings.HasPrefix(key, c.extractor+":"), key)
			seen[key] = [2]string{a, b}
		}
	}
	require.Greater(t, len(seen), 50_000)
}

// TestHeadOptions: what a chain with options refuses.
func TestHeadOptions(t *testing.T) {
	t.Parallel()
	for _, pointer := range []string{"", "a", "/a~", "/a~2", "#/a"} {
		_, err := msgkey.Options{JSONPointers: []string{pointer}}.NewChain(msgkey.JSON)
		var refused *msgkey.OptionError
		require.ErrorAs(t, err, &refused, pointer)
		require.Equal(t, "JSONPointers", refused.Option)
	}
	_, err := msgkey.NewChain(msgkey.JSON)
	require.ErrorContains(t, err, "needs at least one")
	_, err = msgkey.NewChain(msgkey.Auto)
	require.NoError(t, err, "auto does without")
}

// TestHeadsInAuto: what auto makes of MIME, XML and JSON.
func TestHeadsInAuto(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, key string }{
		{userEnvelope, "as4:POP1/m1@c2.example"},
		{mimeOf("B", userEnvelope, "", "pay"), "as4:POP1/m1@c2.example"},
		{`{"a":"x","b":{"c":[1]}}`, "json:x/1"},
		{`{"a":"x"}`, "json.pointer_not_found"},
		{"A: b\r\n\r\ntext", "as4.no_soap_part"},
		{"\xFF\xFE<\x00a\x00", "xml.encoding"},
	} {
		require.Equal(t, c.key, headCase{extractor: msgkey.Auto, value: c.value}.key(t), c.value)
	}
	_, code := attempt(t, msgkey.Auto, &msgkey.Message{Value: []byte(`{"a":"x"}`)})
	require.Equal(t, msgkey.KeyNotFound, code)
}
