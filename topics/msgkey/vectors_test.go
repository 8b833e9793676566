package msgkey_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// vector is one line of testdata/message-keys.jsonl.
type vector struct {
	Format  string          `json:"format"`
	Name    string          `json:"name"`
	Payload string          `json:"payload_base64"`
	Headers json.RawMessage `json:"headers"` // other formats repeat names
	Key     string          `json:"expect_key"`
	Code    msgkey.Code     `json:"expect_error"`
}

// extractor is the name of the format's extractor.
func (v vector) extractor() string {
	if v.Format == "cloudevents" {
		return msgkey.CE
	}
	return v.Format
}

// options stand in headers of their own in vectors; in rules they are settings.
func (v vector) options(t testing.TB) msgkey.Options {
	t.Helper()
	var o msgkey.Options
	if pointers, ok := lookUp(v.headers(t))("x-dedup-pointers", 0); ok {
		o.JSONPointers = strings.Fields(string(pointers))
	}
	if pattern, ok := lookUp(v.headers(t))("x-dedup-file-pattern", 0); ok {
		o.FilePattern = string(pattern)
	}
	_, o.OFTP1Dates = lookUp(v.headers(t))("x-dedup-oftp1", 0)
	_, o.Lenient = lookUp(v.headers(t))("x-dedup-lenient", 0)
	_, o.SharedInvoices = lookUp(v.headers(t))("x-dedup-scheme", 0)
	_, o.CXMLOrder = lookUp(v.headers(t))("x-dedup-cxml-order", 0)
	sellers, _ := lookUp(v.headers(t))("x-dedup-sellers", 0)
	for kind := range strings.FieldsSeq(string(sellers)) {
		o.Sellers = append(o.Sellers, msgkey.Seller(kind))
	}
	switch level, _ := lookUp(v.headers(t))("x-dedup-message-level", 0); string(level) {
	case "message":
		o.EDIFACTMessages, o.X12Level = true, msgkey.X12Transactions
	case "group":
		o.X12Level = msgkey.X12Groups
	}
	return o
}

func readVectors(t testing.TB) []vector { return readVectorsOf(t, "testdata/message-keys.jsonl") }

func readVectorsOf(t testing.TB, file string) []vector {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	require.NoError(t, lines.Err())
	return all
}

func (v vector) value(t testing.TB) []byte {
	t.Helper()
	value, err := base64.StdEncoding.DecodeString(v.Payload)
	require.NoError(t, err)
	return value
}

func (v vector) message(t testing.TB) *msgkey.Message {
	t.Helper()
	return &msgkey.Message{Value: v.value(t), Header: lookUp(v.headers(t))}
}

// headers gives names and values in their order, repeats included.
func (v vector) headers(t testing.TB) [][2]string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(v.Headers))
	var all [][2]string
	for next := func() string { tok, err := d.Token(); require.NoError(t, err); return fmt.Sprint(tok) }; ; {
		if name := next(); name == "}" {
			return all
		} else if name != "{" {
			all = append(all, [2]string{name, next()})
		}
	}
}

// lookUp answers as a record's headers do: counted from the last of a name, in
// any case.
func lookUp(headers [][2]string) func(string, int) ([]byte, bool) {
	return func(name string, back int) ([]byte, bool) {
		for _, h := range slices.Backward(headers) {
			if !strings.EqualFold(h[0], name) {
				continue
			}
			if back == 0 {
				return []byte(h[1]), true
			}
			back--
		}
		return nil, false
	}
}

func message(value []byte, headers map[string]string) *msgkey.Message {
	list := make([][2]string, 0, len(headers))
	for name, h := range headers {
		list = append(list, [2]string{name, h})
	}
	return &msgkey.Message{Value: value, Header: lookUp(list)}
}

// attempt runs one extractor and gives its own code.
func attempt(t testing.TB, name string, m *msgkey.Message) (msgkey.Found, msgkey.Code) {
	t.Helper()
	return attemptWith(t, msgkey.Options{}, name, m)
}

func attemptWith(t testing.TB, o msgkey.Options, name string, m *msgkey.Message) (msgkey.Found, msgkey.Code) {
	t.Helper()
	c, err := o.NewChain(name)
	require.NoError(t, err)
	a := c.Attempts(m)[0]
	return a.Found, a.Code
}

// TestVectors runs every vector. The counts are exact, so that none is left out
// unseen.
func TestVectors(t *testing.T) {
	t.Parallel()
	covered := map[string]int{
		"edifact": 23, "x12": 19, "header": 18, "ubl": 11, "cii": 8, "sbdh": 8, "cxml": 7,
		"as4": 13, "as2": 9, "oftp2": 9, "sftp": 5, "rest": 8, "json": 9, "cloudevents": 7,
	}
	ran := map[string]int{}
	for _, v := range readVectors(t) {
		ran[v.Format]++
		v.run(t)
	}
	require.Equal(t, covered, ran)
}

// run checks what the format's extractor makes of a vector.
func (v vector) run(t testing.TB) {
	t.Helper()
	found, code := attemptWith(t, v.options(t), v.extractor(), v.message(t))
	require.Equal(t, v.Code, code, "%s/%s", v.Format, v.Name)
	require.Equal(t, v.Key, found.Key, "%s/%s", v.Format, v.Name)
	if v.Key != "" {
		require.Equal(t, v.extractor(), found.Extractor)
		requireRoundTrip(t, found.Key)
		requireRoundTrip(t, found.KeyWithDate())
	}
}

// requireRoundTrip feeds an output key back as an explicit key.
func requireRoundTrip(t testing.TB, key string) {
	t.Helper()
	again, code := msgkey.Explicit([]byte(key))
	require.Empty(t, code)
	require.Equal(t, key, again)
	require.LessOrEqual(t, len(key), msgkey.MaxKey)
}

// TestVectorsThroughTheDefaultChain checks that the format's own extractor and
// the chain of the built-in rules agree.
func TestVectorsThroughTheDefaultChain(t *testing.T) {
	t.Parallel()
	chain, err := msgkey.NewChain(msgkey.Header, msgkey.Auto)
	require.NoError(t, err)
	for _, v := range readVectors(t) {
		if !slices.Contains([]string{"header", "edifact", "x12", "ubl", "cii", "sbdh", "cxml"}, v.Format) {
			continue
		}
		found, code := chain.Extract(v.message(t))
		require.Equal(t, v.Key, found.Key, v.Name)
		want := v.Code
		switch {
		case want == msgkey.X12NoISA, want == msgkey.HeaderMissingKey, want == msgkey.UBLUnknownRoot, want == msgkey.CXMLUnknownRoot, v.Name == "bad-not-xml":
			want = msgkey.KeyNotFound // its format was not found
		}
		require.Equal(t, want, code, v.Name)
	}
}
