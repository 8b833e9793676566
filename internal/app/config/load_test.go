package config_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/app/config"
	"dedupledger/internal/setting"
	"dedupledger/topics"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// required gives what has no default.
func required(more ...string) []string {
	return append([]string{
		"DEDUP_KAFKA_BROKERS=127.0.0.1:9092", "DEDUP_REDIS_ADDRS=127.0.0.1:6379",
		"DEDUP_POSTGRES_URL=postgres://dedup_app@127.0.0.1/dedup",
	}, more...)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dedup.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestEveryKeyAtItsDefault(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Load("testdata/full.yaml", nil)
	require.NoError(t, err)
	want := config.Default()
	want.Kafka.Brokers = []string{"kafka-1:9092"}
	want.Redis.Addrs = []string{"redis:6379"}
	want.Postgres.URL = setting.NewSecret("postgres://dedup_app@db/dedup?target_session_attrs=read-write")
	want.Flows = c.Flows
	require.Equal(t, "testdata/full.yaml", c.Places["topics.scope_from"].Name)
	c.Places = nil
	require.Equal(t, want, c)
	require.Len(t, c.Flows, 10)
	require.Empty(t, warnings)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Load("", required())
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, config.Log{Level: slog.LevelInfo, Format: "json"}, c.Log)
	require.Equal(t, topics.Names{
		Raw: `^raw-ingest\.(.+)$`, Operator: "dedup-operator", Clean: "clean.$1", Duplicates: "duplicates", DeadLetter: "dead-letter",
	}, c.Topics.Names)
	require.EqualValues(t, 33554432, c.Topics.MaxRecordBytes)
	require.Equal(t, 3*setting.Day, c.Topics.Create.RawRetention)
	require.Equal(t, config.Processor{
		Sessions: 4, Slot: "auto", StaticMembership: true, BatchRecords: 2000, ChunkRecords: 500, BatchWait: 20 * time.Millisecond,
		StallExit: 5 * time.Minute, ShutdownGrace: 25 * time.Second,
	}, c.Processor)
	require.Equal(t, config.Months{Ahead: 3, Keep: 14}, c.Months)
	require.True(t, c.BuiltinRules)
	rules, err := c.Rules()
	require.NoError(t, err)
	_, known := rules.Flow("acme:as2")
	require.True(t, known)
}

func TestMinimalFile(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Load("testdata/minimal.yaml", nil)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, []string{"kafka-1:9093", "kafka-2:9093"}, c.Kafka.Brokers)
	require.Equal(t, "postgres://dedup_app@db:5432/dedup", c.Postgres.URL.Reveal())
	require.Len(t, c.Flows, 1)
}

// TestBadFile holds the whole text of a refusal: it is what a user reads.
func TestBadFile(t *testing.T) {
	t.Parallel()
	_, warnings, err := config.Load("testdata/bad.yaml", []string{
		"DEDUP_PROCESSOR_BATCH_WAIT=0.02s", "DEDUP_REDIS_FAST_QUEUE=5", "DEDUP_KAFKA_BROKER=x", "PATH=/bin",
	})
	require.Error(t, err)
	var problems setting.Problems
	require.ErrorAs(t, err, &problems)
	require.NotContains(t, err.Error(), "hunter2")
	const golden = "testdata/bad.golden"
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
	}
	want, readErr := os.ReadFile(golden)
	require.NoError(t, readErr)
	require.Equal(t, string(want), err.Error()+"\n")
	require.Equal(t, "[DEDUP_KAFKA_BROKER: not read: no key has this name]", fmt.Sprint(warnings))
}

func TestEnvironmentWins(t *testing.T) {
	t.Parallel()
	path := write(t, "kafka: {brokers: [old:1], group: file}\nredis: {addrs: [a:1], ttl_cap: 48h}\npostgres: {url: 'postgres://u@h/d'}\n")
	c, _, err := config.Load(path, []string{
		"DEDUP_KAFKA_BROKERS=k1:9092, k2:9092", "DEDUP_REDIS_TTL_CAP=0", "DEDUP_PROCESSOR_SLOT=7", "DEDUP_BUILTIN_RULES=false",
		"DEDUP_LOG_LEVEL=debug", "DEDUP_TOPICS_CREATE_REPLICATION=1", "DEDUP_HTTP_LISTEN=", "DEDUP_TOPICS_HEADER_NAMES=",
		"DEDUP_TOPICS_SCOPE_FROM=key", "DEDUP_REDIS_PASSWORD=pw=with,signs",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"k1:9092", "k2:9092"}, c.Kafka.Brokers)
	require.Equal(t, "file", c.Kafka.Group)
	require.Zero(t, c.Redis.TTLCap)
	require.Equal(t, "7", c.Processor.Slot)
	require.False(t, c.BuiltinRules)
	require.Equal(t, slog.LevelDebug, c.Log.Level)
	require.EqualValues(t, 1, c.Topics.Create.Replication)
	require.Empty(t, c.HTTP.Listen)
	require.Equal(t, "pw=with,signs", c.Redis.Password.Inline.Reveal())
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	_, warnings, err := config.Load("", required("DEDUP_PORT_8080_TCP=tcp://10.0.0.1:8080", "DEDUP_FLOWS=x",
		"DEDUP_TEST_KAFKA=x", "DEDUP_CONFIG=x", "DEDUP_SERVER=x", "DEDUP_TOKEN_FILE=x"))
	require.NoError(t, err)
	require.Equal(t, "[DEDUP_PORT_8080_TCP: not read: no key has this name DEDUP_FLOWS: not read: flows come from the file only]",
		fmt.Sprint(warnings))
}

func TestRequired(t *testing.T) {
	t.Parallel()
	_, _, err := config.Load("", nil)
	require.EqualError(t, err, "kafka.brokers: must be set, here or in DEDUP_KAFKA_BROKERS\n"+
		"redis.addrs: must be set, here or in DEDUP_REDIS_ADDRS\npostgres.url: must be set, here or in DEDUP_POSTGRES_URL")
	_, _, err = config.Load("", []string{"DEDUP_POSTGRES_URL=postgres://u@h/d"}, "postgres.url")
	require.NoError(t, err)
	path := write(t, "# nothing yet\nkafka: {brokers: []}\n")
	_, _, err = config.Load(path, required()[1:])
	require.EqualError(t, err, path+":2: kafka.brokers: must be set, here or in DEDUP_KAFKA_BROKERS")
	path = write(t, "kafka: {}\n---\n")
	_, _, err = config.Load(path, nil)
	require.EqualError(t, err, path+": more than one YAML document", "what it sets is not known")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, want string }{
		{"a: [", "not YAML: line 1: did not find expected node content"},
		{"log: {}\n---\nlog: {}\n", "more than one YAML document"},
		{"- a\n", ":1: not a section; known keys are log, http, kafka, topics, processor, redis, postgres, months, sightings, " +
			"duplicates, archive, metrics, otel, builtin_rules, flows"},
		{"log: &a {level: *a}\n", ":1: log.level: a list or section where one value is needed"},
		{"<<: {a: b}\n", ":1: <<: unknown key; known are"},
		{"topics: {raw: 'raw\\.(.+)'}\n", `:1: topics.raw: "raw\\.(.+)": must be anchored`},
		{"topics: {raw: '^(.+)$'}\n", "must not match"},
		{"topics: {duplicates: x, dead_letter: x}\n", "must differ from"},
		{"postgres: {lock_timeout: 15s}\n", `:1: postgres.lock_timeout: "15s": must be below postgres.statement_timeout (15s)`},
		{"kafka: {transaction_timeout: 10s}\n", `:1: kafka.rebalance_timeout: "30s": must be below kafka.transaction_timeout (10s)`},
		{"http: {ops_listen: ':8080'}\n", `:1: http.ops_listen: ":8080": the port of http.listen (:8080)`},
		{"http: {listen: '127.0.0.1:9090', ops_listen: '0.0.0.0:9090'}\n", ":1: http.ops_listen: "},
		{"http: {ops_listen: 9090}\n", `:1: http.ops_listen: "9090": write host:port or :port; "" for none`},
		{"processor: {sessions: 11}\n", `:1: postgres.pool.max: "12": must be at least processor.sessions + 2 (13)`},
		{"redis: {password: a, password_file: b}\n", ":1: redis.password_file: set beside redis.password; write one of them"},
		{"redis: {password_file: /nowhere/pw}\n", ":1: redis.password_file: password file /nowhere/pw: no such file or directory"},
		{"months: {keep: 13}\nflows: [{match: 'a:b', window: 400d}]\n", ":1: months.keep: \"13\": keeps 393d online, but the longest window is 400d"},
		{"flows: {match: x}\n", ":1: flows: not a list"},
	} {
		path := write(t, c.file)
		_, _, err := config.Load(path, required())
		require.Error(t, err, c.file)
		require.Contains(t, err.Error(), c.want)
	}
	_, _, err := config.Load("/nowhere/dedup.yaml", required())
	require.EqualError(t, err, "/nowhere/dedup.yaml: no such file or directory")
	_, _, err = config.Load(t.TempDir(), required())
	require.ErrorContains(t, err, ": is a directory")
}

func TestEmptySectionsAndAliases(t *testing.T) {
	t.Parallel()
	_, _, err := config.Load(write(t, "log:\nflows:\nredis: {tls: }\nx-window: &w 1d\n"), required())
	require.ErrorContains(t, err, ":4: x-window: unknown key")
	c, _, err := config.Load(write(t, "log:\nflows:\n- {match: 'a:*', window: &w 9d}\n- {match: 'b:*', window: *w}\n"), required())
	require.NoError(t, err)
	require.Equal(t, 9*setting.Day, c.Flows[1].Window.Value)
	_, _, err = config.Load(write(t, ""), required())
	require.NoError(t, err)
}

func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	c, _, err := config.Load("", []string{
		"DEDUP_KAFKA_BROKERS=a:1", "DEDUP_REDIS_ADDRS=a:1", "DEDUP_POSTGRES_URL=postgres://u:hunter2@h/d", "DEDUP_REDIS_PASSWORD=hunter2",
	})
	require.NoError(t, err)
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, nil)).Info("config", "config", c)
	fmt.Fprintf(&out, "%v %+v %#v", c, *c, *c)
	require.NoError(t, json.NewEncoder(&out).Encode(c))
	require.NotContains(t, out.String(), "hunter2")
}

func TestConnString(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pw")
	require.NoError(t, os.WriteFile(path, []byte("p@ss/word\n"), 0o600))
	c, _, err := config.Load("", required("DEDUP_POSTGRES_PASSWORD_FILE="+path))
	require.NoError(t, err)
	url, err := c.Postgres.ConnString()
	require.NoError(t, err)
	require.Equal(t, "postgres://dedup_app:p%40ss%2Fword@127.0.0.1/dedup", url.Reveal())
	c.Postgres.Password.File = ""
	url, err = c.Postgres.ConnString()
	require.NoError(t, err)
	require.Equal(t, "postgres://dedup_app@127.0.0.1/dedup", url.Reveal())
}

func TestPasswordFileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pw")
	require.NoError(t, os.WriteFile(path, []byte("one\r\n"), 0o600))
	c, _, err := config.Load("", required("DEDUP_REDIS_PASSWORD_FILE="+path))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("two"), 0o600))
	password, err := c.Redis.Password.Read()
	require.NoError(t, err)
	require.Equal(t, "two", password.Reveal())
	require.NoError(t, os.WriteFile(path, []byte("\n"), 0o600))
	_, err = c.Redis.Password.Read()
	require.ErrorContains(t, err, "empty")
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{"full", "minimal", "bad"} {
		text, err := os.ReadFile("testdata/" + seed + ".yaml")
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte("flows: &a [*a, {<<: *a}]\nlog: !!binary x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "dedup.yaml")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		c, _, err := config.Load(path, nil)
		require.Equal(t, c == nil, err != nil)
	})
}

func TestListeners(t *testing.T) {
	t.Parallel()
	for _, fine := range []string{
		"http: {ops_listen: ':9090'}", "http: {listen: '', ops_listen: ':8080'}", "http: {listen: '127.0.0.1:0', ops_listen: '127.0.0.1:0'}",
		"http: {listen: '10.0.0.1:8080', ops_listen: '127.0.0.1:8080'}",
	} {
		_, _, err := config.Load(write(t, fine), required())
		require.NoError(t, err, fine)
	}
}
