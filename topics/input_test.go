package topics_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
	"dedupledger/topics/msgkey"
)

func header(name, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: name, Value: []byte(value)}
}

// TestInputScope: the first place that says anything decides, readable or not.
func TestInputScope(t *testing.T) {
	t.Parallel()
	both := []kgo.RecordHeader{header("dedup-scope", "first:h"), header("Dedup-Scope", "acme:h")}
	for name, c := range map[string]struct {
		from    []string
		key     []byte
		headers []kgo.RecordHeader
		want    string
	}{
		"by default the key":             {nil, []byte("acme:k"), both, "acme:k"},
		"by default the key, though nil": {nil, nil, both, ""},
		"key":                            {[]string{"key"}, []byte("acme:k"), both, "acme:k"},
		"header, the last":               {[]string{"header"}, []byte("acme:k"), both, "acme:h"},
		"header, missing":                {[]string{"header"}, []byte("acme:k"), nil, ""},
		"key before header":              {[]string{"key", "header"}, []byte("acme:k"), both, "acme:k"},
		"nil key":                        {[]string{"key", "header"}, nil, both, "acme:h"},
		"empty key":                      {[]string{"key", "header"}, []byte{}, both, "acme:h"},
		"malformed key decides":          {[]string{"key", "header"}, []byte("4711"), both, "4711"},
		"neither":                        {[]string{"key", "header"}, nil, nil, ""},
		"header before key":              {[]string{"header", "key"}, []byte("acme:k"), both, "acme:h"},
		"missing header":                 {[]string{"header", "key"}, []byte("acme:k"), nil, "acme:k"},
		"null header":                    {[]string{"header", "key"}, []byte("acme:k"), []kgo.RecordHeader{{Key: "dedup-scope"}}, "acme:k"},
		"empty header":                   {[]string{"header", "key"}, []byte("acme:k"), []kgo.RecordHeader{header("dedup-scope", "")}, "acme:k"},
		"malformed header decides":       {[]string{"header", "key"}, []byte("acme:k"), []kgo.RecordHeader{header("dedup-scope", " ")}, " "},
	} {
		in, err := topics.NewInput(c.from, nil)
		require.NoError(t, err, name)
		require.Equal(t, c.want, string(in.Scope(&kgo.Record{Key: c.key, Headers: c.headers})), name)
	}
}

func TestInputHeaderNames(t *testing.T) {
	t.Parallel()
	in, err := topics.NewInput([]string{"header", "key"}, map[string]string{
		"Dedup-Key": "X-AS2-Message-ID", "dedup-scope": "X-Scope", "source-service": "Gateway",
	})
	require.NoError(t, err)
	rec := &kgo.Record{Headers: []kgo.RecordHeader{
		header("x-as2-message-id", "old"), header("x-as2-MESSAGE-id", "<1@x>"), header("dedup-key", "not read"),
		header("x-scope", "acme:as2"), header("dedup-scope", "other:as2"), header("gateway", "gw-1"), header("source-service", "not read"),
	}}
	value, ok := in.Header(rec.Headers, topics.HeaderKey)
	require.True(t, ok)
	require.Equal(t, "<1@x>", string(value))
	require.Equal(t, "acme:as2", string(in.Scope(rec)))
	require.Equal(t, "gw-1", in.SourceService(rec.Headers))
	_, ok = in.Header([]kgo.RecordHeader{header("dedup-key", "x")}, topics.HeaderKey)
	require.False(t, ok, "the renamed header alone is read")
	in, err = topics.NewInput(nil, map[string]string{"message-id": "X-Id", "AS2-From": "X-Partner", "x-client-id": "X-Partner", "dedup-key": "x-id"})
	require.NoError(t, err, "of a transport")
	for name, want := range map[string]string{msgkey.HeaderMessageID: "<2@x>", msgkey.HeaderAS2From: "ACME", msgkey.HeaderClientID: "ACME"} {
		value, ok = in.Header([]kgo.RecordHeader{header("X-ID", "<2@x>"), header("x-partner", "ACME"), header("message-id", "no")}, name)
		require.True(t, ok, name)
		require.Equal(t, want, string(value))
	}
	var zero topics.Input
	value, _ = zero.Header(rec.Headers, topics.HeaderKey)
	require.Equal(t, "not read", string(value))
}

func TestInputRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from  []string
		names map[string]string
		field string
		says  string
	}{
		"no place":         {[]string{"topic"}, nil, "topics.scope_from", "[key]"},
		"twice":            {[]string{"key", "key"}, nil, "topics.scope_from", "[key]"},
		"no header of us":  {nil, map[string]string{"message": "X"}, "topics.header_names", "write dedup-key, dedup-scope, source-service"},
		"an output header": {nil, map[string]string{"dedup-id": "X"}, "topics.header_names", "no header that the filter reads"},
		"empty":            {nil, map[string]string{"dedup-key": ""}, "topics.header_names", "the sender's header"},
		"blanks around":    {nil, map[string]string{"dedup-key": " x"}, "topics.header_names", "without blanks"},
		"to one of ours":   {nil, map[string]string{"source-service": "Dedup-Id"}, "topics.header_names", "the filter's own"},
		"two to one":       {nil, map[string]string{"dedup-key": "X-Id", "source-service": "x-ID"}, "topics.header_names", "cannot be two"},
		"to another":       {nil, map[string]string{"dedup-key": "Source-Service"}, "topics.header_names", "cannot be two"},
		"scope not read":   {[]string{"key"}, map[string]string{"dedup-scope": "X-Scope"}, "topics.header_names", "topics.scope_from"},
	} {
		_, err := topics.NewInput(c.from, c.names)
		var fault *topics.NameError
		require.ErrorAs(t, err, &fault, name)
		require.Equal(t, c.field, fault.Field, name)
		require.ErrorContains(t, err, c.says, name)
	}
}
