package demo

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
)

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		require.Equal(t, want, thousands(n))
	}
}

func TestVerdictIsRemembered(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tr := transcript{out: &out}
	require.Equal(t, "PASS", tr.verdict(true))
	require.False(t, tr.missed)
	require.Equal(t, "FAIL", tr.verdict(false))
	require.Equal(t, "PASS", tr.verdict(true))
	require.True(t, tr.missed)
	var faults []string
	for i := range 1500 {
		faults = append(faults, fmt.Sprint("fault ", i))
	}
	tr.explain(faults)
	require.True(t, strings.HasPrefix(out.String(), "   wrong: fault 0\n"))
	require.True(t, strings.HasSuffix(out.String(), "   wrong: fault 9\n   ... and 1,490 more\n"))
}

// TestFilterOwesTheCallerNothing: settings of a production filter in the
// caller's environment would win over the demo's file.
func TestFilterOwesTheCallerNothing(t *testing.T) {
	t.Parallel()
	e := &devservices.Embedded{KafkaAddr: "127.0.0.1:1", RedisAddr: "127.0.0.1:2", Database: &devservices.Database{AppURL: "postgres://app:secret@127.0.0.1:3/d"}}
	f, err := newFilter(t.TempDir(), "dedup", []string{"PATH=/bin", "DEDUP_POSTGRES_URL=postgres://production/d", "DEDUP_KAFKA_GROUP=x"}, &front{}, e)
	require.NoError(t, err)
	require.Equal(t, []string{"PATH=/bin"}, f.environ)
	info, err := os.Stat(f.config)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it may hold a password")
	text, err := os.ReadFile(f.config)
	require.NoError(t, err)
	require.Contains(t, string(text), "postgres: {url: \"postgres://app:secret@127.0.0.1:3/d\"}\n")
}
