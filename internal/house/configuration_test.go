package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"dedupledger/internal/app/config"
)

// configurationKeys are the paths of all keys but flows: a file that has each
// of them is held complete by the tests of internal/app/config.
func configurationKeys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "internal/app/config/testdata/full.yaml"))
	require.NoError(t, err)
	var top yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &top))
	keys := leaves(top.Content[0], "")
	require.Greater(t, len(keys), 90)
	return keys
}

func leaves(n *yaml.Node, at string) []string {
	var all []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := at+n.Content[i].Value, n.Content[i+1]
		switch {
		case key == "flows":
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			all = append(all, leaves(value, key+".")...)
		default:
			all = append(all, key)
		}
	}
	return all
}

// variable is the environment variable of a key.
func variable(key string) string {
	return "DEDUP_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

var configKey = regexp.MustCompile(`(?:^|[^\w./-])((?:log|http|kafka|topics|processor|redis|postgres|months|archive|sightings|duplicates|metrics|otel)(?:\.[a-z0-9_]+)+)`)

// TestConfigurationKeys: each key that a document names exists.
func TestConfigurationKeys(t *testing.T) {
	t.Parallel()
	known := configurationKeys(t)
	check(t, func(span string) string { return wrongKey(known, span) })
	require.NotEmpty(t, wrongKey(known, "postgres.uri"))
	require.Empty(t, wrongKey(known, "postgres.url: x"))
}

func wrongKey(known []string, span string) string {
	for _, m := range configKey.FindAllStringSubmatch(span, -1) {
		if !slices.Contains(known, m[1]) && !ownFile.MatchString(m[1]) {
			return "no key " + m[1]
		}
	}
	return ""
}

// TestConfigurationPage: docs/configuration.md has every key, and those of later
// releases, which are refused, under their own heading.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/configuration.md"))
	require.NoError(t, err)
	now, later, found := strings.Cut(string(text), "\n## Keys of later releases\n")
	require.True(t, found)
	for _, key := range configurationKeys(t) {
		part := now
		if comesLater(key) {
			part = later
		}
		if !strings.Contains(part, "`"+key+"`") {
			t.Errorf("docs/configuration.md does not have %s, or not where it belongs", key)
		}
	}
}

// comesLater asks the configuration whether a key takes any value but one.
func comesLater(key string) bool {
	_, _, err := config.Load("", []string{
		"DEDUP_KAFKA_BROKERS=k:9092", "DEDUP_REDIS_ADDRS=r:6379", "DEDUP_POSTGRES_URL=postgres://p/d", variable(key) + "=x=y",
	})
	return err != nil && strings.Contains(err.Error(), key+": ") && strings.Contains(err.Error(), "comes with a later release")
}

// TestConfigurationExamples: each YAML block of a document is a configuration
// without a fault.
func TestConfigurationExamples(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x\n"), 0o600))
	examples := 0
	for _, d := range documents(t) {
		var block []string
		for i, l := range d.lines {
			if l.fence != "yaml" {
				continue
			}
			block = append(block, regexp.MustCompile(`/run/secrets/\w+`).ReplaceAllString(l.text, secret))
			if i+1 < len(d.lines) && d.lines[i+1].no == l.no+1 {
				continue // the block goes on
			}
			examples++
			file := filepath.Join(t.TempDir(), "dedup.yaml")
			require.NoError(t, os.WriteFile(file, []byte(strings.Join(block, "\n")), 0o600))
			_, _, err := config.Load(file, nil)
			require.NoErrorf(t, err, "%s, the block that ends in line %d", d.name, l.no)
			block = nil
		}
	}
	require.GreaterOrEqual(t, examples, 3)
}
