package msgkey_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

func keyOf(t testing.TB, name string, value []byte) (string, msgkey.Code) {
	t.Helper()
	found, code := attempt(t, name, &msgkey.Message{Value: value})
	require.Contains(t, append(msgkey.Codes(), ""), code)
	require.Equal(t, code == "", found.Key != "")
	return found.Key, code
}

// TestTruncationNeverGivesTheKey cuts every accepted vector at every octet. A
// cut among the blanks behind the last segment changes nothing, and of X12 the
// last segment may lack its terminator; every other cut must give no key.
func TestTruncationNeverGivesTheKey(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t) {
		if v.Key == "" || v.Format != "edifact" && v.Format != "x12" {
			continue
		}
		value := v.value(t)
		complete := len(bytes.TrimRight(value, " \t\r\n\x00\x1A"))
		if v.Format == "x12" {
			complete = bytes.LastIndex(value, []byte("IEA")) + len("IEA*1*000004711")
		} else if complete < len(value) && strings.HasPrefix(v.Name, "una-newline") {
			complete++ // the line feed is the terminator
		}
		for cut := range value {
			key, code := keyOf(t, v.Format, value[:cut])
			if cut < complete {
				require.NotEmpty(t, code, "%s cut at %d gives %q", v.Name, cut, key)
			} else {
				require.Equal(t, v.Key, key, "%s cut at %d", v.Name, cut)
			}
		}
	}
}

// TestLineEndsDoNotChangeTheKey writes one interchange with other line ends
// and wrapped at every width.
func TestLineEndsDoNotChangeTheKey(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"edifact": released, "x12": invoice} {
		want, code := keyOf(t, name, []byte(value))
		require.Empty(t, code)
		oneLine := strings.ReplaceAll(value, "\n", "")
		for _, end := range []string{"\n", "\r\n", "\r"} {
			requireKey(t, name, want, strings.ReplaceAll(value, "\n", end))
			requireKey(t, name, want, wrap(oneLine, 80, end))
		}
		requireKey(t, name, want, oneLine)
		requireKey(t, name, want, "\xEF\xBB\xBF\r\n \t\x00"+value+" \r\n\x00\x1A")
	}
	want, _ := keyOf(t, "edifact", []byte(released))
	oneLine := strings.ReplaceAll(released, "\n", "")
	for width := len("UNA:+.? '"); width < len(oneLine); width++ {
		requireKey(t, "edifact", want, wrap(oneLine, width, "\r\n"))
	}
}

func requireKey(t testing.TB, name, want, value string) {
	t.Helper()
	key, code := keyOf(t, name, []byte(value))
	require.Empty(t, code, "%q", value)
	require.Equal(t, want, key, "%q", value)
}

func wrap(s string, width int, end string) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + end)
		s = s[width:]
	}
	return b.String() + s
}

// TestIdentifyingOctetsChangeTheKey changes each octet of what identifies an
// interchange, in header and trailer alike.
// Fault card: F23.
func TestIdentifyingOctetsChangeTheKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value string
		identity    []string
	}{
		{"edifact", orders, []string{"SENDER", "14+HUB", "HUB", "14+261102", "77001"}},
		{"x12", invoice, []string{"ACMEBUYER      *01", "ZZ*ACME", "01*0098", "009876543", "000004711"}},
	} {
		want, code := keyOf(t, tt.name, []byte(tt.value))
		require.Empty(t, code)
		for _, id := range tt.identity {
			letters := strings.IndexAny(id, "*+ ")
			if letters < 0 {
				letters = len(id)
			}
			for i := range letters {
				other := []byte(id)
				other[i] = '7' + other[i]&1 // another one, and a digit where digits must be
				if other[i] == id[i] {
					other[i] = '6'
				}
				changed := strings.ReplaceAll(tt.value, id, string(other))
				require.NotEqual(t, tt.value, changed)
				key, code := keyOf(t, tt.name, []byte(changed))
				require.Empty(t, code, changed)
				require.NotEqual(t, want, key, changed)
			}
		}
	}
}
