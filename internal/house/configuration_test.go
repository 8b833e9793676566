package house

import (
	"bytes"
	"encoding/pem"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"dedupledger/internal/app/config"
	"dedupledger/internal/setting"
)

var rewrite = flag.Bool("rewrite", false, "write what is made from the source anew")

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

// TestConfigurationPage: the tables of docs/configuration.md and the file
// docs/dedup.yaml are what internal/app/config makes of its keys: none is
// missing, and path, default and meaning are the same.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	const page, file = "docs/configuration.md", "docs/dedup.yaml"
	var defaults bytes.Buffer
	require.NoError(t, config.WriteDefaults(&defaults))
	text, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	made, shown := fillTables(string(text), config.Keys())
	for _, k := range config.Keys() {
		require.Equal(t, 1, shown[k.Path], "%s: which <!-- keys … --> of %s takes its section?", k.Path, page)
	}
	requireMade(t, page, made)
	requireMade(t, file, defaults.String())
}

// TestConfigurationPageBites is the negative control: a key, a default or a
// meaning that changed is seen.
func TestConfigurationPageBites(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/configuration.md"))
	require.NoError(t, err)
	for _, change := range []func(*config.Key){
		func(k *config.Key) { k.Path += "_2" },
		func(k *config.Key) { k.Default.Text = "41" },
		func(k *config.Key) { k.Meaning = "other" },
		func(k *config.Key) { k.Later = true },
	} {
		keys := config.Keys()
		change(&keys[slices.IndexFunc(keys, func(k config.Key) bool { return k.Path == "kafka.group" })])
		made, _ := fillTables(string(text), keys)
		require.NotEqual(t, string(text), made)
	}
}

// requireMade compares a file of the tree with what it is made from.
func requireMade(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(root, name)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(text), "%s is not what internal/app/config/keys.go and meanings.go say; write it anew with:"+
		" go test ./internal/house -run TestConfigurationPage -rewrite", name)
}

var tables = regexp.MustCompile(`(?s)(<!-- keys ([a-z_ ]+) -->\n).*?(<!-- /keys -->)`)

// fillTables puts the keys into the tables between the page's marks, and counts
// how often each got one.
func fillTables(page string, keys []config.Key) (made string, shown map[string]int) {
	shown = map[string]int{}
	return tables.ReplaceAllStringFunc(page, func(table string) string {
		m := tables.FindStringSubmatch(table)
		if m[2] == "later" {
			return m[1] + laterTable(keys, shown) + m[3]
		}
		rows := "| key | default | meaning |\n| --- | --- | --- |\n"
		for _, k := range keys {
			section, _, _ := strings.Cut(k.Path, ".")
			if slices.Contains(strings.Fields(m[2]), section) && !k.Later {
				shown[k.Path]++
				rows += row(k)
			}
		}
		return m[1] + rows + m[3]
	}), shown
}

func row(k config.Key) string {
	standard := " "
	switch {
	case k.Required:
		standard = " must be set "
	case defaultText(k) != "":
		standard = " `" + defaultText(k) + "` "
	}
	return "| `" + k.Path + "` |" + standard + "| " + k.Meaning + " |\n"
}

func defaultText(k config.Key) string {
	switch {
	case k.Default.Shape == setting.List && len(k.Default.Items) > 0:
		return "[" + strings.Join(k.Default.Items, ", ") + "]"
	case k.Default.Shape == setting.Map && !k.Later:
		return "{}"
	}
	return k.Default.Text
}

// laterTable puts neighbours of one section and one value into a row.
func laterTable(keys []config.Key, shown map[string]int) string {
	rows, open := "| key | only value |\n| --- | --- |\n", ""
	end := ""
	for _, k := range keys {
		if !k.Later {
			continue
		}
		shown[k.Path]++
		value := "unset"
		if defaultText(k) != "" {
			value = "`" + defaultText(k) + "`"
		}
		section, _, _ := strings.Cut(k.Path, ".")
		if section+value == open {
			rows += ", `" + k.Path + "`"
		} else {
			rows += end + "| `" + k.Path + "`"
		}
		open, end = section+value, " | "+value+" |\n"
	}
	return rows + end
}

// TestConfigurationExamples: each YAML block of a document is a configuration
// without a fault.
func TestConfigurationExamples(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x\n"), 0o600))
	authority := filepath.Join(t.TempDir(), "ca.crt")
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	files := strings.NewReplacer("/etc/dedup/kafka-ca.crt", authority, "/etc/dedup/redis-ca.crt", authority, "/etc/dedup/postgres-ca.crt", authority)
	examples := 0
	for _, d := range documents(t) {
		var block []string
		for i, l := range d.lines {
			if l.fence != "yaml" {
				continue
			}
			block = append(block, files.Replace(regexp.MustCompile(`/run/secrets/\w+`).ReplaceAllString(l.text, secret)))
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
