package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/app/config"
)

// TestEveryKeyHasAMeaning, and every meaning a key.
func TestEveryKeyHasAMeaning(t *testing.T) {
	t.Parallel()
	for _, k := range config.Keys() {
		require.NotEmpty(t, k.Meaning, "%s: add it to internal/app/config/meanings.go", k.Path)
	}
}

// TestDefaultsFile: the file with every key loads once the three required keys
// are set, and then it is the default configuration.
func TestDefaultsFile(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	require.NoError(t, config.WriteDefaults(&text))
	file := write(t, text.String())
	_, _, err := config.Load(file, nil)
	require.ErrorContains(t, err, "kafka.brokers: must be set")
	got, warnings, err := config.Load(file, required())
	require.NoError(t, err)
	require.Empty(t, warnings)
	want, _, err := config.Load("", required())
	require.NoError(t, err)
	got.Places, want.Places = nil, nil
	require.Equal(t, want, got)
}

const shown = `log: {level: debug}
kafka: {brokers: ["[::1]:9092", k2:9092], group: "null"}
redis: {addrs: [r:6379], password: hunter2, prefix: "d'x:"}
postgres: {url: "postgres://u:hunter2@h/d?password=hunter2&application_name=x"}
flows:
  - {match: "acme:*", key: "edifact:40*", window: 1d, with_date: true}
  - {match: "acme:{a,b}", extractors: [header], namespace: ""}
`

// TestEffectiveLoadsAgain: what show writes is what applies, but for secrets.
func TestEffectiveLoadsAgain(t *testing.T) {
	t.Parallel()
	file := write(t, shown)
	environ := []string{"DEDUP_PROCESSOR_SESSIONS=2", "DEDUP_LOG_FORMAT=text"}
	e, warnings, err := config.Explain(file, environ)
	require.NoError(t, err)
	require.Empty(t, warnings)
	var text bytes.Buffer
	require.NoError(t, e.WriteYAML(&text))
	require.NotContains(t, text.String(), "hunter2")
	for _, line := range []string{
		"  level: debug                            # " + file + ":1\n",
		"  sessions: 2                             # DEDUP_PROCESSOR_SESSIONS\n",
		"  # password: ***                         # " + file + ":3, not shown\n",
		"  password_file: \"\"                       # default\n",
		"  url: 'postgres://u@h/d?application_name=x'  # " + file + ":4, its password is not shown\n",
		"  - {match: 'acme:*', key: 'edifact:40*', window: 1d, with_date: true}  # " + file + ":6\n",
	} {
		require.Contains(t, text.String(), line)
	}
	again := filepath.Join(filepath.Dir(file), "again.yaml")
	require.NoError(t, os.WriteFile(again, text.Bytes(), 0o600))
	got, _, err := config.Load(again, nil)
	require.NoError(t, err)
	want, _, err := config.Load(file, environ)
	require.NoError(t, err)
	got.Redis.Password, got.Postgres.URL = want.Redis.Password, want.Postgres.URL
	require.Len(t, got.Flows, 2)
	require.Equal(t, want.Flows[1].Extractors.Value, got.Flows[1].Extractors.Value)
	require.True(t, got.Flows[1].Namespace.Set, "an empty namespace is a setting")
	got.Flows = want.Flows // their places differ
	got.Places, want.Places = nil, nil
	require.Equal(t, want, got)
}

// TestExplainOfNothing: what is missing is shown as missing, and is no error.
func TestExplainOfNothing(t *testing.T) {
	t.Parallel()
	e, _, err := config.Explain("", nil)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, e.WriteYAML(&text))
	require.Contains(t, text.String(), "  brokers: []                             # must be set\n")
	_, _, err = config.Explain("", []string{"DEDUP_LOG_LEVEL=loud"})
	require.EqualError(t, err, `DEDUP_LOG_LEVEL: log.level: "loud": write debug, info, warn or error`)
}

// TestSecretsAreKnown: every key that may hold a password is marked.
func TestSecretsAreKnown(t *testing.T) {
	t.Parallel()
	for _, k := range config.Keys() {
		may := strings.HasSuffix(k.Path, "password") || strings.HasSuffix(k.Path, "url")
		require.Equal(t, may, k.Secret, k.Path)
	}
}
