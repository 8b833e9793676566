package integration

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cached is a line of an old cache.
func cached(scope, key, payload string, age time.Duration, window string) string {
	return fmt.Sprintf("%s,%s,%x,%s,%s\n", scope, key, sha256.Sum256([]byte(payload)), time.Now().UTC().Add(-age).Format(time.RFC3339Nano), window)
}

const cacheHeader = "scope,key,sha256,first_seen,window\n"

func (b *bundle) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// tally is what an import says of its lines.
type tally struct{ Lines, Imported, Known, OtherHash, Expired, Future, Bad, Opaque int64 }

// bring runs `dedup import`.
func (b *bundle) bring(t *testing.T, code int, args ...string) (n tally, said string) {
	t.Helper()
	r := b.try(t, []string{"DEDUP_ACTOR=maria"}, append([]string{"import", "-o", "json", "--reason", reason}, args...)...)
	require.Equal(t, code, r.code, "%s%s", r.stdout, r.stderr)
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &n))
	t.Log(r.stdout)
	return n, r.stderr
}

// verdict sends a message and is what became of it.
func (b *bundle) verdict(t *testing.T, m message) *output {
	t.Helper()
	b.produce(t, m)
	b.awaitOutputs(t)
	return b.outputOf(t, len(b.books())-1)
}

const aDay = 24 * time.Hour

// TestImport: what an old cache knows is imported beside a running filter. Its
// copies are SEEN or DRIFT with the time that the cache told; what its window or its
// line did not bring in is NEW. Given again it changes nothing.
func TestImport(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1, Flows: `- {match: "acme:{as2,as4}", namespace: shared}`})
	old := b.file(t, "old-as4.csv", cacheHeader+
		cached("acme:as4", "K-1", "a", 20*aDay, "")+
		cached("acme:rest", "hdr:K-2", "b", 80*aDay, "90d")+
		cached("acme:as4", "over", "a", 31*aDay, "")+ // the rules give it 30 days
		cached("acme:as4", "ahead", "a", -aDay, "")+
		cached("acme", "bad", "a", aDay, "")+
		cached("acme:as2", "K-1", "x", aDay, "")) // the same key space
	require.Equal(t, 2, b.try(t, nil, "import", old).code, "without a reason")
	want := tally{Lines: 6, Imported: 2, Known: 1, OtherHash: 1, Expired: 1, Future: 1, Bad: 1, Opaque: 4}
	n, said := b.bring(t, 1, old, "--dry-run")
	require.Equal(t, want, n)
	require.Contains(t, said, `old-as4.csv:6: scope: "acme": write tenant:flow`)
	require.Zero(t, b.sumOf(t, `select (select count(*) from dedup_ledger) + (select count(*) from dedup_scope) + (select count(*) from dedup_action)`))

	f := b.start(t, 0)
	n, said = b.bring(t, 1, old)
	require.Equal(t, want, n)
	require.Contains(t, said, "dedup: 1 of 6 lines are bad: mend them and import the file again")
	require.Equal(t, strings.Repeat("; maria import old-as4.csv "+reason, 2)[2:], b.acts(t))
	require.Equal(t, "begun done 2", ask[string](t, b, `select string_agg(detail->>'state', ' ' order by id) || ' ' || max((detail->'counts'->>'imported')) from dedup_action`))
	require.Equal(t, "acme:rest acme:shared", ask[string](t, b, `select string_agg(scope, ' ' order by scope) from dedup_scope where gate is null`))
	require.Zero(t, b.sumOf(t, `select count(*) from dedup_hour`))

	row := ask[time.Time](t, b, `select first_seen_at from dedup_ledger where scope = 'acme:shared'`)
	seen := b.verdict(t, keyed("acme:as2", "K-1", []byte("a")))
	require.Equal(t, "SEEN", seen.Status())
	for name, is := range map[string]string{
		"dedup-first-seen-at": row.UTC().Format("2006-01-02T15:04:05.000000Z"), "dedup-expires-at": row.UTC().Add(30 * aDay).Format("2006-01-02T15:04:05.000000Z"),
		"dedup-first-origin": "", "dedup-first-id": "", "dedup-first-payload-sha256": fmt.Sprintf("%x", sha256.Sum256([]byte("a"))),
	} {
		require.Equal(t, is, header(seen.Record, name), name)
	}
	for _, c := range []struct {
		scope, key, payload, status string
	}{
		{"acme:as4", "K-1", "other", "DRIFT"},
		{"acme:rest", "K-2", "b", "SEEN"},
		{"acme:rest", "K-1", "a", "NEW"}, // another key space
		{"acme:as4", "over", "a", "NEW"},
		{"acme:as4", "ahead", "a", "NEW"},
		{"acme:as4", "bad", "a", "NEW"},
	} {
		require.Equal(t, c.status, b.verdict(t, keyed(c.scope, c.key, []byte(c.payload))).Status(), "%s %s", c.scope, c.key)
	}
	require.Equal(t, "acme:rest 1, acme:shared 1", ask[string](t, b, `select string_agg(scope || ' ' || gate, ', ' order by scope) from dedup_scope`), "the gate is the record's")

	rows := `select string_agg(l::text, E'\n' order by l::text) from dedup_ledger l`
	before := ask[string](t, b, rows)
	n, _ = b.bring(t, 1, old)
	require.Equal(t, tally{Lines: 6, Known: 3, OtherHash: 1, Expired: 1, Future: 1, Bad: 1, Opaque: 4}, n)
	require.Equal(t, before, ask[string](t, b, rows))

	// Two systems have accepted one message, and the filter's window had ended: no
	// fault of the ledger's.
	b.asOwner(t, `select dedup_month_1(now() - interval '10 days')`)
	b.asOwner(t, `update dedup_ledger set first_seen_at = now() - interval '10 days', expires_at = now() - interval '5 days' where key = 'hdr:bad'`)
	n, _ = b.bring(t, 0, b.file(t, "late.csv", cacheHeader+cached("acme:as4", "bad", "a", 7*aDay, "")))
	require.Equal(t, int64(1), n.Imported)
	require.Regexp(t, `ok +deep`, b.try(t, nil, "doctor", "--deep").stdout)
	f.term(t)
}

// TestImportKilled: with kill -9 in the middle, and given again. What had come in by
// then is judged by the filter, and nothing comes in twice.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	const lines = 20_250
	var text strings.Builder
	text.WriteString(cacheHeader)
	for i := range lines {
		text.WriteString(cached("acme:rest", fmt.Sprintf("rest:%d", i), "a", time.Duration(i%40)*aDay, "60d"))
	}
	f := b.start(t, 0)
	// The pipe stays open, so it waits for the rest of its third chunk.
	some := strings.Join(strings.SplitAfter(text.String(), "\n")[:1251], "")
	kill := b.importFrom(t, strings.NewReader(some))
	b.awaitSQL(t, `select count(*) = 1000 from dedup_ledger`)
	kill()
	require.Equal(t, "SEEN", b.verdict(t, keyed("acme:rest", "rest:999", []byte("a"))).Status())
	require.Equal(t, "NEW", b.verdict(t, keyed("acme:rest", "rest:1000", []byte("a"))).Status())

	whole := b.file(t, "whole.csv", text.String())
	want := tally{Lines: lines, Imported: lines - 1001, Known: 1001}
	for _, args := range [][]string{{whole, "--dry-run"}, {whole}} {
		n, _ := b.bring(t, 0, args...)
		require.Equal(t, want, n)
	}
	require.Equal(t, "20250 20250", ask[string](t, b, `select count(*) || ' ' || count(distinct key) from dedup_ledger`))
	require.Equal(t, "stdin begun, whole.csv begun, whole.csv done", ask[string](t, b, `select string_agg(place || ' ' || (detail->>'state'), ', ' order by id) from dedup_action`))
	require.Equal(t, "DRIFT", b.verdict(t, keyed("acme:rest", "rest:20249", []byte("b"))).Status())
	require.Regexp(t, `ok +deep`, b.try(t, nil, "doctor", "--deep").stdout)
	f.term(t)
}

// TestImportByTheActiveRules: on an empty ledger the import's rules become the
// active ones, as the filter's would. With others it is refused, and names the line;
// also in the middle of a file, when others are made active.
func TestImportByTheActiveRules(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1, Flows: `- {match: "acme:{as2,as4}", namespace: shared}`})
	other := b.withRules(t, "  - {match: \"acme:as2\", namespace: own}\n")
	const active = `select coalesce(fingerprint, '') from dedup_meta`
	lines := b.file(t, "old.csv", cacheHeader+cached("acme:as4", "K-1", "a", aDay, ""))
	b.bring(t, 0, lines, "--dry-run")
	require.Empty(t, ask[string](t, b, active), "a dry run")
	b.bring(t, 0, lines)
	require.NotEmpty(t, ask[string](t, b, active))

	for _, args := range [][]string{{lines, "--dry-run"}, {lines, "--reason", reason}} {
		refused := other.try(t, []string{"DEDUP_ACTOR=maria"}, append([]string{"import"}, args...)...)
		require.Equal(t, 1, refused.code)
		require.Empty(t, refused.stdout)
		require.Contains(t, refused.stderr, "dedup: not importing: the rules that make keys are not the active ones")
		require.Contains(t, refused.stderr, other.config+":")
	}
	require.Equal(t, "2", ask[string](t, b, `select count(*)::text from dedup_action`), "of the first")

	f := b.start(t, 0)
	require.Equal(t, "SEEN", b.verdict(t, keyed("acme:as2", "K-1", []byte("a"))).Status())

	c, in := b.importing(t)
	said := &strings.Builder{}
	c.Stderr = said
	require.NoError(t, c.Start())
	chunk := strings.Repeat(cached("acme:as4", "K-1", "a", aDay, ""), 500)
	_, err := io.WriteString(in, cacheHeader+chunk)
	require.NoError(t, err)
	b.awaitSQL(t, `select count(*) = 3 from dedup_action`)
	other.command(t, nil, "config", "activate", "--reason", reason)
	for err == nil { // until it does not read any more
		_, err = io.WriteString(in, chunk)
	}
	require.Error(t, c.Wait())
	require.Regexp(t, `stdin, after \d+ lines: not importing: the rules that make keys are not the active ones`, said.String())
	require.Equal(t, "failed", ask[string](t, b, `select detail->>'state' from dedup_action order by id desc limit 1`))
	f.term(t)
}

// importing is `dedup import -`, and what it reads.
func (b *bundle) importing(t *testing.T) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	binary, err := shared.binary()
	require.NoError(t, err)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "import", "-", "--reason", reason, "-c", b.config)
	c.Env = environment(nil)
	in, err := c.StdinPipe()
	require.NoError(t, err)
	return c, in
}

// importFrom starts `dedup import -` and gives it a text, and no end. kill ends it
// with SIGKILL.
func (b *bundle) importFrom(t *testing.T, text io.Reader) (kill func()) {
	t.Helper()
	c, in := b.importing(t)
	require.NoError(t, c.Start())
	ended := false
	kill = func() {
		if !ended {
			ended = true
			require.NoError(t, c.Process.Kill())
			require.Error(t, c.Wait())
		}
	}
	t.Cleanup(kill)
	_, err := io.Copy(in, text)
	require.NoError(t, err)
	return kill
}
