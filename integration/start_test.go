package integration

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"dedupledger/internal/devservices"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// requireFailure: exit 1, one sentence that says what to do.
func (b *bundle) requireFailure(t *testing.T, env []string, sentences ...string) {
	t.Helper()
	r := b.try(t, append(env, "DEDUP_HTTP_LISTEN=127.0.0.1:0", "DEDUP_LOG_LEVEL=error"), "run")
	r.requireSentence(t, sentences...)
}

// requireSentence: exit 1, one line on stderr that says all of this, and nothing
// else.
func (r *result) requireSentence(t *testing.T, sentences ...string) {
	t.Helper()
	require.Empty(t, r.stdout, "stdout is for data")
	r.requireSays(t, sentences...)
}

// requireSays: exit 1 and one line on stderr, whatever was on stdout before.
func (r *result) requireSays(t *testing.T, sentences ...string) {
	t.Helper()
	t.Logf("exit %d: %s", r.code, strings.TrimSpace(r.stderr))
	require.Equal(t, 1, r.code, r.stderr)
	require.Equal(t, 1, strings.Count(r.stderr, "\n"), "one sentence: %s", r.stderr)
	for _, s := range sentences {
		require.Contains(t, r.stderr, s)
	}
	require.NotContains(t, r.stderr, "goroutine ", "a stack is no sentence")
}

// TestSchemaMissingOldOrNew: the sentence names the command that mends it, and
// after it the same start works.
func TestSchemaMissingOldOrNew(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Unprepared: true})
	b.ensureTopics(t)
	b.requireFailure(t, nil, "the database holds no ledger yet", "dedup migrate up")
	b.migrate(t)
	b.asOwner(t, `delete from dedup_migration where version_id = (select max(version_id) from dedup_migration)`)
	b.requireFailure(t, nil, "the schema is version", "dedup migrate up")
	b.asOwner(t, `insert into dedup_migration (version_id, is_applied) select max(version_id) + 1, true from dedup_migration`)
	b.asOwner(t, `insert into dedup_migration (version_id, is_applied) values (9999, true)`)
	b.asOwner(t, `update dedup_meta set runs_from = 9998`)
	b.produce(t, orders("acme:edifact", 0, 5)...)
	b.requireFailure(t, nil, "the schema is version 9999 and good for programs of 9998 and later", "this program knows only", "install the newer program")
	require.Zero(t, ask[int](t, b, `select count(*) from dedup_position`), "consumed")
	// One release ahead: the program goes on under it.
	b.asOwner(t, `update dedup_meta set runs_from = default`)
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 5)...)
	b.check(t)
	f.term(t)
}

// setHostRules writes pg_hba.conf where the server has it, in a container or not,
// and starts the server again: a reload is in force some moments later.
func setHostRules(t *testing.T, pg *devservices.Postgres, rules ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pg.URL())
	require.NoError(t, err)
	var file string
	require.NoError(t, c.QueryRow(t.Context(), "show hba_file").Scan(&file))
	_, err = c.Exec(t.Context(), "copy (select unnest(array['"+strings.Join(rules, "','")+"'])) to '"+file+"'")
	require.NoError(t, err)
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, pg.Stop(t.Context()))
	require.NoError(t, pg.Start(t.Context()))
}

// TestPostgresCredentials: a wrong password ends the start; it and the right one
// are in no log.
func TestPostgresCredentials(t *testing.T) {
	t.Parallel()
	pg := ownPostgres(t)
	setHostRules(t, pg, "host all postgres all trust", "host all dedup_owner all trust", "host all all all scram-sha-256")
	b := newBundle(t, setup{Postgres: pg})
	const right, wrong = "right-secret-1", "wrong-secret-2"
	require.NoError(t, b.query(t.Context(), `alter role dedup_app password '`+right+`'`, nil))
	as := func(user, password, database string) []string {
		u, err := url.Parse(b.db.AppURL)
		require.NoError(t, err)
		if u.User = url.UserPassword(user, password); password == "" {
			u.User = url.User(user)
		}
		u.Path = "/" + database
		return []string{"DEDUP_POSTGRES_URL=" + u.String()}
	}
	for _, env := range [][]string{
		as("dedup_app", wrong, b.db.Name), as("dedup_app", "", b.db.Name), as("nobody_here", right, b.db.Name),
	} {
		b.requireFailure(t, env, "PostgreSQL refuses the login", "postgres.url")
	}
	prefer := func(env []string) []string {
		return []string{strings.ReplaceAll(env[0], "sslmode=disable", "sslmode=prefer")}
	}
	unnamed := prefer(as("dedup_app", right, "no_such_database"))
	b.requireFailure(t, unnamed, "PostgreSQL has no such database; correct its name in postgres.url", `FATAL: database "no_such_database" does not exist`)
	for _, command := range []string{"up", "status", "plan"} {
		r := b.try(t, unnamed, "migrate", command)
		r.requireSentence(t, "PostgreSQL has no such database; correct its name in postgres.url", `FATAL: database "no_such_database" does not exist`)
	}
	// That the server has no TLS is not why it does not let us in: what is waited
	// for with sslmode=disable is waited for with the default, too.
	limit := "alter database " + b.db.Name + " connection limit "
	require.NoError(t, b.query(t.Context(), limit+"0", nil))
	late := b.launch(t, 2, prefer(as("dedup_app", right, b.db.Name))...)
	late.awaitReason(t, "FATAL: too many connections for database")
	require.NoError(t, b.query(t.Context(), limit+"-1", nil))
	late.awaitReady(t)
	late.term(t)

	secret := filepath.Join(b.dir, "password")
	require.NoError(t, os.WriteFile(secret, []byte(right+"\n"), 0o600))
	f := b.start(t, 0, append(as("dedup_app", "", b.db.Name), "DEDUP_POSTGRES_PASSWORD_FILE="+secret)...)
	g := b.start(t, 1, append(as("dedup_app", right, b.db.Name), "DEDUP_LOG_LEVEL=debug")...)
	b.produce(t, orders("acme:edifact", 0, 20)...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
	for _, p := range []*filter{f, g} {
		log, err := os.ReadFile(p.log)
		require.NoError(t, err)
		require.NotContains(t, string(log), right)
	}
}

// TestOutputTopicMissing: a raw topic waits for each of its three outputs, at
// the start too, with the command that makes them; another raw topic goes on
// meanwhile, and this one does by itself once they are there.
// Fault card: F13.
func TestOutputTopicMissing(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Topics: []string{"waits", "flows"}, Partitions: 2, Unprepared: true})
	b.migrate(t)
	b.createTopic(t, b.raw[0], nil)
	f := b.launch(t, 0)
	for _, name := range []string{b.clean[0], b.duplicates, b.deadLetter} {
		said := f.awaitHeld(t, b.raw[0]+"/0", "topics")
		require.Contains(t, said, name)
		require.Contains(t, said, "create with: dedup topics ensure "+b.raw[0])
		f.awaitMetric(t, "dedup_held_partitions", []string{`reason="topics"`, b.raw[0]}, func(n float64) bool { return n == 2 })
		b.createTopic(t, name, nil)
	}
	f.awaitLog(t, "create with: dedup topics ensure "+b.raw[0])
	f.awaitReady(t)
	b.createTopic(t, b.clean[1], nil)
	b.createTopic(t, b.raw[1], nil)
	f.awaitPartitions(t, 4)
	f.term(t)

	b.deleteTopic(t, b.clean[0])
	f = b.launch(t, 0)
	require.Contains(t, f.awaitHeld(t, b.raw[0]+"/1", "topics"), b.clean[0])
	held := orders("acme:edifact", 0, 5)
	b.produce(t, held...)
	flows := orders("acme:as2", 1, 5)
	for i := range flows {
		flows[i].Topic = 1
	}
	b.produce(t, flows...)
	k := b.track(t)
	k.awaitCount(t, len(flows))
	k.client.Close()
	b.createTopic(t, b.clean[0], nil)
	f.awaitReady(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestNoRawTopicYet: the filter waits, says so, and takes up the topic when it
// is made.
// Fault card: F13.
func TestNoRawTopicYet(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Topics: []string{"as2", "later"}, Unprepared: true})
	b.migrate(t)
	f := b.launch(t, 0)
	f.awaitReason(t, "no raw topic yet")
	require.Equal(t, 200, must(f.get(t.Context(), "/healthz")))
	f.awaitLog(t, "no raw topic yet")
	b.command(t, nil, "topics", "ensure", b.raw[0])
	f.awaitReady(t)
	b.produce(t, orders("acme:edifact", 0, 5)...)
	// And a second topic while it runs.
	b.command(t, nil, "topics", "ensure", b.raw[1])
	for _, m := range orders("acme:edifact", 3, 5) {
		m.Topic = 1
		b.produce(t, m)
	}
	b.check(t)
	f.awaitPartitions(t, 2*b.partitions)
	f.term(t)
	b.checkStopped(t)
}

// TestBrokerUnreachableAtStart: retried with the reason until there is one.
func TestBrokerUnreachableAtStart(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{})
	port, err := devservices.FreePort()
	require.NoError(t, err)
	addr := "127.0.0.1:" + strconv.Itoa(port)
	f := b.launch(t, 0, "DEDUP_KAFKA_BROKERS="+addr)
	f.awaitReason(t, addr)
	f.awaitLog(t, "waiting for kafka")
	require.Equal(t, 200, must(f.get(t.Context(), "/healthz")))
	startForward(t, addr, b.entry())
	f.awaitReady(t)
	b.produce(t, orders("acme:edifact", 0, 5)...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestPostgresUnreachableAtStart: likewise; and SIGTERM ends the waiting.
func TestPostgresUnreachableAtStart(t *testing.T) {
	t.Parallel()
	pg := ownPostgres(t)
	b := newBundle(t, setup{Postgres: pg})
	require.NoError(t, pg.Stop(t.Context()))
	f := b.launch(t, 0)
	f.awaitReason(t, `"postgres":`)
	f.awaitLog(t, "waiting for postgres")
	f.term(t)
	f = b.launch(t, 0)
	f.awaitReason(t, `"postgres":`)
	require.NoError(t, pg.Start(t.Context()))
	f.awaitReady(t)
	b.produce(t, orders("acme:edifact", 0, 5)...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// startForward passes connections on: a broker's advertised address is what
// clients use afterwards, so only the first question goes this way.
func startForward(t *testing.T, from, to string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", from)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				wg.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
					_ = way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
}

// TestConfigurationErrors: all at once, with file, line, field, value and what
// is allowed, before anything connects; exit 2.
func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Unprepared: true})
	bad := filepath.Join(b.dir, "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte(`kafka: {brokers: ["127.0.0.1:1"], sesion_timeout: 6s}
redis: {addrs: ["127.0.0.1:1"]}
postgres: {url: "postgres://app:very-secret@127.0.0.1:1/x", lock_timeout: 5 minutes}
processor: {sessions: 0}
topics: {raw: '^clean\.(.+)$'}
flows:
  - {match: "acme:*", window: "60 days"}
`), 0o600))
	b.config = bad
	r := b.try(t, nil, "run")
	t.Logf("exit %d:\n%s", r.code, r.stderr)
	require.Equal(t, 2, r.code, r.stderr)
	require.Empty(t, r.stdout)
	for line, field := range map[int]string{1: "sesion_timeout", 3: "postgres.lock_timeout", 4: "processor.sessions", 5: "topics.clean", 7: "flows[0].window"} {
		require.Regexp(t, fmt.Sprintf(`bad\.yaml:%d: .*%s`, line, regexp.QuoteMeta(field)), r.stderr)
	}
	require.Contains(t, r.stderr, "60 days")
	require.NotContains(t, r.stderr, "very-secret")

	b.config = filepath.Join(b.dir, "none.yaml")
	r = b.try(t, nil, "run")
	require.Equal(t, 2, r.code, r.stderr)
	require.Contains(t, r.stderr, "none.yaml")
	b.config = bad
	require.Equal(t, 2, b.try(t, nil, "run", "--no-such-flag").code)
}
