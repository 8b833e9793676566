package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"dedupledger/topics/msgkey"
)

// call is one run of the command in this process.
type call struct {
	environ []string
	stdin   []byte
}

type outcome struct {
	code           int
	stdout, stderr string
}

func (c call) run(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), &program{
		args: args, environ: c.environ, stdin: bytes.NewReader(c.stdin), stdout: &stdout, stderr: &stderr,
	})
	return outcome{code, stdout.String(), stderr.String()}
}

const interchange = "UNB+UNOC:3+4098765000014:14+4012345000023:14+261102:0930+77001'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+77001'"

const interchangeKey = "edifact:4098765000014:14/4012345000023:14/77001"

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		stderr string
	}{
		{"", "dedup: which command? One of "},
		{"kee x", "dedup: unknown command \"kee\"; did you mean key?\nSee 'dedup --help'.\n"},
		{"migrate", "dedup: which command? One of plan, status, up\nSee 'dedup migrate --help'.\n"},
		{"migrate upp", "dedup: unknown command \"upp\"; did you mean up?\nSee 'dedup migrate --help'.\n"},
		{"migrate up now", "dedup: unknown command \"now\" for \"dedup migrate up\"\nSee 'dedup migrate up --help'.\n"},
		{"migrate up --lock-timeout 60", "not a duration; write a number with ms, s, m, h, d or y (10ms to 10m)"},
		{"key", "dedup: 0 messages: name FILEs, or - for stdin\nSee 'dedup key --help'.\n"},
		{"key --bogus -", "dedup: unknown flag: --bogus\nSee 'dedup key --help'.\n"},
		{"key --format odette -", "dedup: --format: unknown extractor \"odette\"; known: " + strings.Join(msgkey.Names(), " ") + "\n"},
		{"key --header novalue -", "dedup: --header \"novalue\": write NAME=VALUE\n"},
		{"key --format json -", "dedup: --format json: which members? Write --header x-dedup-pointers='/order/id', or ask with --scope"},
		{"key --format json --header x-dedup-pointers=id -", "dedup: --header x-dedup-pointers \"id\": write an RFC 6901 pointer, as /orderId or /order/0/id\n"},
		{"key --scope acme -", "dedup: --scope: \"acme\": write TENANT:FLOW, each 1 to 40 of letters, digits, . _ -\n"},
		{"key --scope acme:as2 --lenient -", "dedup: --scope takes the flow's own chain and options: leave out --format and --lenient\n"},
		{"key -o json a b", "dedup: --output json is for one file, and here are 2: write -o jsonl\n"},
		{"skip", "dedup: accepts 1 arg(s), received 0\nSee 'dedup skip --help'.\n"},
		{"skip raw-ingest.as2 --to 3", "dedup: \"raw-ingest.as2\": write RAW/PARTITION, as in raw-ingest.as2/3\n"},
		{"skip raw-ingest.as2/3", "dedup: --to is missing: the offset to go on at, as in --to 8812\n"},
		{"skip raw-ingest.as2/3 --to -1", "dedup: --to -1: write an offset, 0 or more\n"},
		{"skip raw-ingest.as2/3 --to 9", "dedup: --reason is missing: say why"},
		{"repair --assume perhaps", "dedup: --assume \"perhaps\": write committed or aborted\n"},
		{"topics retire raw-ingest.as2", "dedup: \"raw-ingest.as2\": write RAW@TOPIC-ID"},
		{"completion", "dedup: 0 shells: name one of bash, zsh, fish\nSee 'dedup completion --help'.\n"},
		{"completion tcsh", "dedup: \"tcsh\": write bash, zsh or fish\n"},
		{"version -o yaml", "dedup: --output \"yaml\": write table or json\n"},
		{"version -o jsonl", "dedup: --output \"jsonl\": write table or json\n"},
		{"topics tail clean.as2 -o json", "dedup: --output \"json\": write table or jsonl\n"},
		{"topics tail clean.as2 -o csv", "dedup: --output \"csv\": write table or jsonl\n"},
	} {
		o := call{}.run(t, strings.Fields(c.args)...)
		require.Equal(t, exitUsage, o.code, c.args)
		require.Empty(t, o.stdout, c.args)
		require.Contains(t, o.stderr, c.stderr, c.args)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}} {
		o := call{}.run(t, args...)
		require.Equal(t, exitDone, o.code)
		require.Empty(t, o.stderr)
		require.True(t, strings.HasPrefix(o.stdout, "dedup - one duplicate filter and one ledger for the whole hub\n\n"+
			"Usage: dedup [global flags] COMMAND [flags] [arguments]\n\nRun it\n"))
	}
}

// TestEveryCommandIsExplained: each is in the help of the program, and its own
// help has an example that begins with its very name.
func TestEveryCommandIsExplained(t *testing.T) {
	t.Parallel()
	help := call{}.run(t, "--help").stdout
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Name() == "help" {
				continue
			}
			require.NotEmpty(t, sub.Short, sub.CommandPath())
			require.Contains(t, sub.Example, sub.CommandPath())
			if c.Parent() == nil {
				require.Contains(t, help, "\n  "+sub.Name()+" ")
			}
			o := call{}.run(t, append(strings.Fields(sub.CommandPath())[1:], "--help")...)
			require.Equal(t, exitDone, o.code)
			require.Contains(t, o.stdout, sub.Example)
			visit(sub)
		}
	}
	visit(newRoot(&program{}))
}

func TestVersion(t *testing.T) {
	t.Parallel()
	o := call{}.run(t, "version")
	require.Equal(t, exitDone, o.code)
	require.Regexp(t, `^dedup \S+ \(.*schema \d+, go1\..*\)\n$`, o.stdout)
	require.Equal(t, "dedup "+version+"\n", call{}.run(t, "--version").stdout)
	var b build
	require.NoError(t, json.Unmarshal([]byte(call{}.run(t, "version", "-o", "json").stdout), &b))
	require.Equal(t, version, b.Version)
	require.Positive(t, b.Schema)
}

func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dedup.yaml")
	require.NoError(t, os.WriteFile(file, []byte("log: {level: loud}\npostgres: {url: 'postgres://u:hunter2@h/d', pol: 1}\n"), 0o600))
	want := outcome{2, "", file + ":1: log.level: \"loud\": write debug, info, warn or error\n" +
		file + ":2: postgres.pol: unknown key; known are url, password_file, search_url, pool, statement_cache, lock_timeout, " +
		"statement_timeout, require_sync_standby\n"}
	require.Equal(t, want, call{}.run(t, "migrate", "status", "-c", file))
	require.Equal(t, want, call{environ: []string{"DEDUP_CONFIG=" + file}}.run(t, "migrate", "plan"))

	o := call{environ: []string{"DEDUP_KAFKA_BROKER=x"}}.run(t, "topics", "ensure", "raw-ingest.as2")
	require.Equal(t, outcome{2, "", "warning: DEDUP_KAFKA_BROKER: not read: no key has this name\n" +
		"kafka.brokers: must be set, here or in DEDUP_KAFKA_BROKERS\n"}, o)
}

func TestMigrateWithoutPostgres(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"up", "status", "plan"} {
		o := call{environ: []string{"DEDUP_POSTGRES_URL=postgres://dedup:hunter2@127.0.0.1:1/dedup"}}.run(t, "migrate", verb)
		require.Equal(t, exitFailed, o.code, verb)
		require.Empty(t, o.stdout)
		require.Contains(t, o.stderr, "dedup: ")
		require.NotContains(t, o.stderr, "hunter2")
	}
}

func TestTopicsEnsure(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	c := call{environ: []string{
		"DEDUP_KAFKA_BROKERS=" + strings.Join(cluster.ListenAddrs(), ","), "DEDUP_TOPICS_CREATE_REPLICATION=1",
		"DEDUP_TOPICS_CREATE_PARTITIONS=2",
	}}
	o := c.run(t, "topics", "ensure", "raw-ingest.as2", "--dry-run")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, "would create clean.as2: 2 partitions")

	o = c.run(t, "topics", "ensure", "raw-ingest.as2", "-o", "json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var report ensured
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &report))
	require.Len(t, report.Created, 4)
	require.Equal(t, "2592000000", report.Created[1].Settings["retention.ms"])

	o = c.run(t, "topics", "ensure")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, 4, strings.Count(o.stdout, "unchanged "), o.stdout)

	o = c.run(t, "topics", "ensure", "clean.as2")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, `"clean.as2" is not a raw topic`)
}
