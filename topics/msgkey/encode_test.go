package msgkey_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		want   string
		fields []msgkey.Field
	}{
		"plain octets":         {"s:AZaz09-._@+=,", []msgkey.Field{{"AZaz09-._@+=,"}}},
		"separators":           {"s:a%3Ab%2Fc%25%7E", []msgkey.Field{{"a:b/c%~"}}},
		"octets, not runes":    {"s:%00%DC%C3%BC%7F", []msgkey.Field{{"\x00\xDC\u00FC\x7F"}}},
		"trailing empty parts": {"s:a/b", []msgkey.Field{{"a", "", ""}, {"b"}}},
		"inner empty parts":    {"s:a::b/:c", []msgkey.Field{{"a", "", "b"}, {"", "c"}}},
		"empty fields stay":    {"s:/a/", []msgkey.Field{{}, {"a"}, {""}}},
		"operator":             {"op:release/5f/0/7", []msgkey.Field{{"release"}, {"5f"}, {"0"}, {"7"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, msgkey.Encode(strings.SplitN(tt.want, ":", 2)[0], tt.fields...))
		})
	}
}

func TestEncodeLimit(t *testing.T) {
	t.Parallel()
	at := msgkey.Encode("x12", msgkey.Field{strings.Repeat("a", 196)})
	require.Len(t, at, msgkey.MaxKey)
	require.NotContains(t, at, "~")

	full := "x12:" + strings.Repeat("a", 197)
	sum := sha256.Sum256([]byte(full))
	over := msgkey.Encode("x12", msgkey.Field{strings.Repeat("a", 197)})
	require.Equal(t, full[:114]+"~"+hex.EncodeToString(sum[:]), over)
}

// TestHashedKeyRoundTripsWithCutEscape cuts at each place of a %XX.
func TestHashedKeyRoundTripsWithCutEscape(t *testing.T) {
	t.Parallel()
	for lead := range 4 {
		requireRoundTrip(t, msgkey.Encode("hdr", msgkey.Field{strings.Repeat("a", lead) + strings.Repeat("\x00", 99)}))
	}
}

// TestEncodeIsInjective compares random keys over an alphabet that is rich in
// separators and escapes: equal keys have equal fields.
// Fault card: F08.
func TestEncodeIsInjective(t *testing.T) {
	t.Parallel()
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	seen := map[string][]msgkey.Field{}
	for range 200_000 {
		fields := randomFields(r)
		key := msgkey.Encode("s", fields...)
		if before, ok := seen[key]; ok {
			require.Equal(t, before, fields, "key %q, seed %d", key, seed)
		}
		seen[key] = fields
	}
	require.Greater(t, len(seen), 10_000)
}

func randomFields(r *rand.Rand) []msgkey.Field {
	const alphabet = "a:/%~3A \x00"
	fields := make([]msgkey.Field, 1+r.IntN(3))
	for i := range fields {
		fields[i] = msgkey.Field{}
		for range r.IntN(3) {
			var part strings.Builder
			for range r.IntN(3) {
				part.WriteByte(alphabet[r.IntN(len(alphabet))])
			}
			fields[i] = append(fields[i], part.String())
		}
		fields[i] = withoutEmptyEnd(fields[i])
	}
	return fields
}

func withoutEmptyEnd(f msgkey.Field) msgkey.Field {
	for len(f) > 0 && f[len(f)-1] == "" {
		f = slices.Delete(f, len(f)-1, len(f))
	}
	return f
}
