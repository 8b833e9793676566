package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain also lets the test program be the filter: the demo starts its own
// file with `run`, which no test run is called with.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		os.Exit(run())
	}
	goleak.VerifyTestMain(m)
}

// What differs from run to run: pids, ports, versions, times, hashes, and how
// far a kill found the work. Verdicts and sums do not.
const transcript = `dedup {version} demo. Everything runs on this machine, in a temporary folder, and is removed on exit.
  kafka     {addr}   built-in stand-in (kfake): raw-ingest.demo clean.demo duplicates dead-letter
  redis     {addr}   built-in stand-in (miniredis)
  postgres  {addr}   PostgreSQL {version} ({from}), schema {n}
  filter    pid {pid}   a process of its own, so that it can be killed
  health    http://{addr}/readyz and /metrics

1. What it does                                                     sent as key   verdict   went to
   invoice interchange 77001                                        acme:edifact  NEW       clean.demo/0/0
   the same bytes again (partner got no receipt)                    acme:edifact  SEEN      duplicates/0/{n}  repeat 1 of {time}
   77001 again, but quantity 5 is now 6                             acme:edifact  DRIFT     duplicates/0/{n}  {hash} -> {hash}
   77002, cut off in transit: no UNZ                                acme:edifact  INVALID   dead-letter/0/{n} edifact.no_unz
   77001 from another tenant                                        beta:edifact  NEW       clean.demo/2/0

2. Crash. 10,000 messages, 2,000 of them resends; kill -9 in the middle, twice
   killed pid {pid}   {n} outputs committed; the ledger had already registered {n} more
   killed pid {pid}   {n} outputs committed; the ledger had already registered {n} more
   pid {pid} back at work {seconds} s after the kill
   in 10,000 = NEW 8,000 + SEEN 2,000 + DRIFT 0 + INVALID 0         lost 0   doubled 0   PASS
   ({ahead})

3. Rewind. The group is set back to offset 0, as kafka-consumer-groups --reset-offsets --to-earliest does
   12 partitions: not our offsets, reported and not obeyed          re-emitted 0   doubled 0   PASS

4. Redis emptied and stopped, then every message sent once more
   8,000 answered by PostgreSQL alone   NEW 0   SEEN 8,000          PASS
`

// varying are the placeholders of the transcript.
var varying = strings.NewReplacer(
	`\{version\}`, `[0-9.]+`, `\{addr\}`, `\S+:\d+`, `\{from\}`, `[^)]+`, `\{n\}`, `[\d,]+`, `\{pid\}`, `\d+`,
	`\{time\}`, `\d\d:\d\d:\d\d\.\d{3}`, `\{hash\}`, `[0-9a-f]{8}`, `\{seconds\}`, `\d+\.\d`, `\{ahead\}`, `(?:a ledger|both kills) [^)]+`,
	` `, ` +`,
)

// TestDemo runs the real demo: the filter as a process, killed twice.
func TestDemo(t *testing.T) {
	// PostgreSQL's user must get into the folder.
	temp, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Chmod(temp, 0o711))
	require.NoError(t, os.Chmod(filepath.Dir(temp), 0o711))
	t.Setenv("TMPDIR", temp)
	// A production filter's settings are not the demo's.
	production := append(os.Environ(), "DEDUP_POSTGRES_URL=postgres://production.invalid/dedup", "DEDUP_KAFKA_GROUP=production")

	o := call{environ: production}.run(t, "demo", "--exit")
	require.Equal(t, exitDone, o.code, "%s\n%s", o.stdout, o.stderr)
	pattern := `^` + varying.Replace(regexp.QuoteMeta(transcript)) + `$`
	require.Regexp(t, pattern, o.stdout)
	require.Contains(t, o.stderr, "... waiting for the filter\n")

	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "the demo leaves nothing behind")
	require.Empty(t, children(t), "no process is left")
}

// children are the processes that this one has started and that still run.
func children(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	var all []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (name) state parent ...
		name, rest, ok := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); ok && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			all = append(all, name+")")
		}
	}
	return all
}
