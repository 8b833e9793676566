package topics_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

func TestSourceService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "as2-gw-1", "as2-gw-1"},
		{"empty", "", ""},
		{"NUL", "a\x00b", "a\ufffdb"},
		{"broken UTF-8, byte by byte", "a\xff\xfeb", "a\ufffd\ufffdb"},
		{"cut in the middle of a character", "a\xe2\x82", "a\ufffd\ufffd"},
		{"surrogate", "\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"40 characters", strings.Repeat("x", 40), strings.Repeat("x", 40)},
		{"41 characters", strings.Repeat("x", 41), strings.Repeat("x", 40)},
		{"41 wide characters", strings.Repeat("€", 41), strings.Repeat("€", 40)},
		{"41 widest characters", strings.Repeat("𝄞", 41), strings.Repeat("𝄞", 40)},
		{"long and broken", strings.Repeat("\x00", 5000), strings.Repeat("\ufffd", 40)},
	} {
		got := topics.SourceService([]kgo.RecordHeader{{Key: "source-service", Value: []byte(c.in)}})
		require.Equal(t, c.want, got, c.name)
	}
	require.Empty(t, topics.SourceService(nil))
	require.Empty(t, topics.SourceService([]kgo.RecordHeader{{Key: "source-service"}}), "nil value")
	require.Equal(t, "b", topics.SourceService([]kgo.RecordHeader{
		{Key: "source-service", Value: []byte("a")}, {Key: "Source-Service", Value: []byte("b")}, {Key: "", Value: []byte("c")},
	}), "the last one, in any case")
}

func FuzzSourceService(f *testing.F) {
	f.Add([]byte("as2-gw-1"))
	f.Add([]byte("a\x00\xff"))
	f.Add([]byte(strings.Repeat("€", 50)))
	f.Fuzz(func(t *testing.T, value []byte) {
		got := topics.SourceService([]kgo.RecordHeader{{Key: "source-service", Value: value}})
		require.True(t, utf8.ValidString(got))
		require.NotContains(t, got, "\x00")
		require.LessOrEqual(t, utf8.RuneCountInString(got), 40)
		runes := []rune(strings.ReplaceAll(string([]rune(string(value))), "\x00", "\ufffd"))
		require.Equal(t, string(runes[:min(40, len(runes))]), got)
	})
}
