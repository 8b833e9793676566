package setting_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/setting"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "500ms": 500 * time.Millisecond, "30s": 30 * time.Second, "15m": 15 * time.Minute,
		"12h": 12 * time.Hour, "7d": 168 * time.Hour, "10y": 87600 * time.Hour, "007d": 168 * time.Hour,
	} {
		got, err := setting.Duration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestDurationErrorSaysWhatWasMeant(t *testing.T) {
	t.Parallel()
	const unknown = "not a duration; write a number with ms, s, m, h, d or y"
	for text, want := range map[string]string{
		"60 days": "not a duration; write 60d", "2 weeks": "not a duration; write 14d", "1h30m": "not a duration; write 90m",
		"30S": "not a duration; write 30s", "5 min": "not a duration; write 5m", "1.5s": "not a duration; write 1500ms",
		"": unknown, "30": unknown, "soon": unknown, "-1s": unknown, "0s": unknown,
		"99999999999y": unknown, "9999999999999999999999s": unknown, "1\u0661d": unknown,
	} {
		_, err := setting.Duration(text)
		require.EqualError(t, err, want, text)
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	_, err := setting.DurationWithin("60 days", time.Second, 400*setting.Day)
	require.EqualError(t, err, "not a duration; write 60d (1s to 400d)")
	_, err = setting.DurationWithin("401d", time.Second, 400*setting.Day)
	require.EqualError(t, err, "out of range; write 1s to 400d")
	_, err = setting.SizeWithin("2GiB", 1024, 1<<30)
	require.EqualError(t, err, "out of range; write 1KiB to 1GiB")
	_, err = setting.SizeWithin("2GB", 1024, 1<<30)
	require.EqualError(t, err, "not a size; write bytes as 65536, 64KiB, 10MiB or 1GiB (1KiB to 1GiB)")
}

func TestFormatIsReadBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "500ms", "30s", "15m", "12h", "7d", "3650d"} {
		d, err := setting.Duration(text)
		require.NoError(t, err)
		require.Equal(t, text, setting.FormatDuration(d))
	}
	for _, text := range []string{"0", "1000", "64KiB", "10MiB", "1GiB"} {
		n, err := setting.Size(text)
		require.NoError(t, err)
		require.Equal(t, text, setting.FormatSize(n))
	}
	n, err := setting.Size("7B")
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
}

func TestProblemForm(t *testing.T) {
	t.Parallel()
	p := setting.Problem{
		At: setting.Place{Name: "dedup.yaml", Line: 93}, Path: "flows[4].window", Value: `"60 days"`,
		Why: "not a duration; write 60d (1s to 400d)",
	}
	require.EqualError(t, p, `dedup.yaml:93: flows[4].window: "60 days": not a duration; write 60d (1s to 400d)`)
	env := setting.Problem{At: setting.Place{Name: "DEDUP_LOG_LEVEL"}, Path: "log.level", Value: `"loud"`, Why: "no"}
	absent := setting.Problem{Path: "redis.addrs", Why: "not set"}
	require.Equal(t, setting.Problems{p, env, absent}, setting.Problems{absent, env, p}.Sorted())
	require.EqualError(t, setting.Problems{env, absent}, "DEDUP_LOG_LEVEL: log.level: \"loud\": no\nredis.addrs: not set")
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	s := setting.NewSecret("hunter2")
	type holder struct {
		Open   setting.Secret
		closed setting.Secret
	}
	h := holder{s, s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb, s)
		fmt.Fprintf(&out, verb, h)
		fmt.Fprintf(&out, verb, &h)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "holder", h)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", s, "holder", h)
	require.NoError(t, json.NewEncoder(&out).Encode(h))
	require.Contains(t, out.String(), "***")
	require.NotContains(t, out.String(), "hunter2")
	require.NotContains(t, out.String(), fmt.Sprintf("%x", "hunter2"))
	require.Equal(t, "hunter2", h.closed.Reveal())
	require.Empty(t, setting.Secret{}.String())
	require.Empty(t, setting.Secret{}.Reveal())
}
