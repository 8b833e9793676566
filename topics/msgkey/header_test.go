package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

func TestExplicit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value, key string
		code       msgkey.Code
	}{
		"trimmed":            {value: "\r\n\t A 1 \t\r\n", key: "hdr:A%201"},
		"canonical, trimmed": {value: " x12:a/b \n", key: "x12:a/b"},
		"octets":             {value: "\xFF\xDC", key: "hdr:%FF%DC"},
		"NUL is no blank":    {value: "\x00", key: "hdr:%00"},
		"null":               {code: msgkey.HeaderEmptyKey},
		"blank":              {value: " \r\n\t", code: msgkey.HeaderEmptyKey},
		"4097 blanks":        {value: strings.Repeat(" ", 4097), code: msgkey.HeaderKeyTooLong},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, code := msgkey.Explicit([]byte(tt.value))
			require.Equal(t, tt.code, code)
			require.Equal(t, tt.key, key)
		})
	}
	key, code := msgkey.Explicit([]byte(strings.Repeat("k", msgkey.MaxExplicit)))
	require.Empty(t, code)
	requireRoundTrip(t, key)
}

func TestHeaderKeyHasNoDate(t *testing.T) {
	t.Parallel()
	found, code := attempt(t, msgkey.Header, message(nil, map[string]string{"dedup-key": "edifact:a/b/1"}))
	require.Empty(t, code)
	require.Equal(t, "edifact:a/b/1", found.KeyWithDate())
	require.Equal(t, "edifact:a/b/1", found.FullKey())
}
