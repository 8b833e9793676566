package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// configured is a file with two rules, in a folder of its own.
func configured(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "dedup.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`kafka: {brokers: ["k:9092"]}
redis: {addrs: ["r:6379"], password: hunter2}
postgres: {url: "postgres://dedup_app:hunter2@db/dedup"}
flows:
  - {match: "acme:edifact", key: "edifact:40*", window: 1d, with_date: true}
  - {match: "acme:{as2,sftp}", namespace: b2b}
`), 0o600))
	return file
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	file := configured(t)
	c := call{environ: []string{"DEDUP_LOG_LEVEL=debug", "DEDUP_CONFIG=" + file, "DEDUP_KAFKA_BROKER=x"}}
	o := c.run(t, "config", "check")
	require.Equal(t, outcome{
		0, "ok: " + file + "; from the environment: DEDUP_LOG_LEVEL; rules of your own: 2\n",
		"warning: DEDUP_KAFKA_BROKER: not read: no key has this name\nwarning: " + file + ":5: flows[0].window: 1d is below topics.create.raw_retention (3d)\n",
	}, o)
	require.JSONEq(t, `{"file":"`+file+`","variables":["DEDUP_LOG_LEVEL"],"rules":2,"builtinRules":true}`, c.run(t, "config", "check", "-o", "json").stdout)

	o = call{environ: []string{"DEDUP_POSTGRES_POOL_MAX=5"}}.run(t, "config", "check", "-c", file)
	require.Equal(t, outcome{2, "", "DEDUP_POSTGRES_POOL_MAX: postgres.pool.max: \"5\": must be at least processor.sessions + 2 (6)\n"}, o)
	o = call{}.run(t, "config", "check")
	require.Equal(t, exitUsage, o.code)
	require.Equal(t, 3, strings.Count(o.stderr, ": must be set, here or in DEDUP_"))
}

// TestConfigShowLoadsAgain: what show prints is a configuration that check finds
// right, from the defaults too once the required keys are set.
func TestConfigShowLoadsAgain(t *testing.T) {
	t.Parallel()
	file := configured(t)
	o := call{environ: []string{"DEDUP_PROCESSOR_SESSIONS=2"}}.run(t, "config", "show", "-c", file)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.NotContains(t, o.stdout, "hunter2")
	require.Regexp(t, `(?m)^  sessions: 2 +# DEDUP_PROCESSOR_SESSIONS$`, o.stdout)
	again := filepath.Join(t.TempDir(), "again.yaml")
	require.NoError(t, os.WriteFile(again, []byte(o.stdout), 0o600))
	require.Equal(t, exitDone, call{}.run(t, "config", "check", "-c", again).code)

	o = call{environ: []string{"DEDUP_LOG_LEVEL=loud"}}.run(t, "config", "show", "--defaults")
	require.Equal(t, exitDone, o.code, "reads nothing")
	require.NoError(t, os.WriteFile(again, []byte(o.stdout), 0o600))
	require.Equal(t, exitUsage, call{}.run(t, "config", "check", "-c", again).code)
	o = call{environ: []string{
		"DEDUP_KAFKA_BROKERS=k:9092", "DEDUP_REDIS_ADDRS=r:6379", "DEDUP_POSTGRES_URL=postgres://dedup_app@db/dedup",
	}}.run(t, "config", "check", "-c", again)
	require.Equal(t, exitDone, o.code, o.stderr)
}

func TestConfigShowJSON(t *testing.T) {
	t.Parallel()
	file := configured(t)
	o := call{environ: []string{"DEDUP_REDIS_ADDRS=a:1,b:2"}}.run(t, "config", "show", "-c", file, "-o", "json")
	require.NotContains(t, o.stdout, "hunter2")
	var s shown
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &s))
	byKey := map[string]shownKey{}
	for _, k := range s.Keys {
		byKey[k.Key] = k
	}
	require.Equal(t, shownKey{Key: "redis.addrs", Value: []any{"a:1", "b:2"}, From: "DEDUP_REDIS_ADDRS", Required: true}, byKey["redis.addrs"])
	require.Equal(t, shownKey{Key: "redis.password", Value: "", From: file + ":2", Hidden: true}, byKey["redis.password"])
	require.Equal(t, "postgres://dedup_app@db/dedup", byKey["postgres.url"].Value)
	require.Equal(t, "default", byKey["kafka.group"].From)
	require.Equal(t, file+":5", s.Flows[0].From)
	require.Equal(t, map[string]any{"match": "acme:{as2,sftp}", "namespace": "b2b"}, s.Flows[1].Settings)
	require.Equal(t, "built in", s.Flows[2].From)
	o = call{}.run(t, "config", "show", "--defaults", "-o", "json")
	require.Contains(t, o.stdout, `"meaning": "consumer group`)
}

func TestConfigFlow(t *testing.T) {
	t.Parallel()
	file := configured(t)
	o := call{}.run(t, "config", "flow", "acme:edifact", "-c", file)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Regexp(t, `(?m)^window +1d +edifact:40\* +`+file+`:5 +flows\[0\] acme:edifact$`, o.stdout)
	require.Regexp(t, `(?m)^window +60d +edifact:\* +built in +\*:\*$`, o.stdout)
	require.Regexp(t, `(?m)^window +30d +\* +built in +\*:\*$`, o.stdout)

	o = call{}.run(t, "config", "flow", "acme:sftp", "--key", "edifact:4098765000014:14/4012345000023:14/77001", "-c", file)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, "ledger scope acme:b2b\n")
	require.Equal(t, 1, strings.Count(o.stdout, "\nwindow "))
	require.Regexp(t, `(?m)^namespace +b2b +\* +`+file+`:6 +flows\[1\] `, o.stdout)

	var f explainedFlow
	o = call{}.run(t, "config", "flow", "acme:x", "--key", "4711", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &f))
	require.Equal(t, "hdr:4711", f.Key)
	require.Len(t, f.Settings, 19)

	o = call{environ: []string{"DEDUP_BUILTIN_RULES=false"}}.run(t, "config", "flow", "acme:as2")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "acme:as2: no rule speaks of this flow and builtin_rules is false: its records are INVALID flow.unknown")
	for args, want := range map[string]string{
		"config flow":                   "0 flows: name one TENANT:FLOW",
		"config flow acme":              `"acme": write TENANT:FLOW`,
		"config flow acme:as2 --key= ":  `--key "": no key (header.empty_key)`,
		"config shwo":                   "did you mean show",
		"config flow a:b -c /nowhere/x": "/nowhere/x: no such file or directory",
	} {
		o = call{}.run(t, strings.Fields(args)...)
		require.Equal(t, exitUsage, o.code, args)
		require.Contains(t, o.stderr, want)
	}
}

func TestConfigEnv(t *testing.T) {
	t.Parallel()
	c := call{environ: []string{"DEDUP_REDIS_PASSWORD=hunter2", "DEDUP_LOG_LEVEL=debug", "DEDUP_POSTGRES_URL=postgres://u:hunter2@h/d", "DEDUP_HTTP_LISTEN="}}
	o := c.run(t, "config", "env")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.NotContains(t, o.stdout, "hunter2")
	for _, line := range []string{
		`DEDUP_REDIS_PASSWORD +\*\*\* \(not shown\)`, `DEDUP_LOG_LEVEL +info +"debug"`, `DEDUP_HTTP_LISTEN +:8080 +""`,
		`DEDUP_KAFKA_BROKERS +must be set *`, `DEDUP_ARCHIVE_KEEP +10y \(later release: no other value\) *`, `DEDUP_CONFIG *`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, o.stdout)
	}
	var all []variable
	require.NoError(t, json.Unmarshal([]byte(c.run(t, "config", "env", "-o", "json").stdout), &all))
	for _, v := range all {
		require.Equal(t, v.Name == "DEDUP_REDIS_PASSWORD" || v.Name == "DEDUP_LOG_LEVEL" || v.Name == "DEDUP_POSTGRES_URL" || v.Name == "DEDUP_HTTP_LISTEN", v.Set, v.Name)
	}
}
