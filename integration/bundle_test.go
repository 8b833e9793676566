package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"dedupledger/internal/devservices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// commandWithin bounds a command of the program that ends by itself.
const commandWithin = 60 * time.Second

const deleteWithin = 5 * time.Second

// setup says how a bundle differs from the usual one.
type setup struct {
	Topics     []string // last parts of the raw topics' names; default "as2"
	Partitions int      // of every topic; default 4
	Flows      string   // YAML list items, one a line, put before the built-in rules
	Kafka      string   // host:port instead of the run's Kafka
	Restricted string   // host:port where that Kafka holds the program to its rights
	Redis      string   // host:port instead of the run's Redis
	Postgres   *devservices.Postgres
	Unprepared bool // neither migrated nor topics made
	Ungranted  bool // the filter has no rights on Kafka yet
}

// bundle is one test's own corner of the services: topics, consumer group,
// database and Redis prefix that no other test uses.
type bundle struct {
	id          string
	raw         []string // topic names, in the order of setup.Topics
	clean       []string
	duplicates  string
	deadLetter  string
	perTenant   []string // duplicates and dead-letter topics of single tenants, in the place of those two
	group       string
	redisPrefix string
	brokers     []string // for the test
	restricted  string   // host:port for the program, which is held to its rights there; "": brokers
	redisUser   string   // ACL user of the filter; "": default
	partitions  int
	config      string // path of dedup.yaml
	dir         string
	db          *devservices.Database

	client *kgo.Client // produces
	admin  *kadm.Client

	mu   sync.Mutex
	sent []sent
}

func newBundle(t *testing.T, s setup) *bundle {
	t.Helper()
	id := uuid.NewString()[:8]
	b := &bundle{
		id: id, group: "dedup-" + id, redisPrefix: "dedup:" + id + ":",
		duplicates: "duplicates." + id, deadLetter: "dead-letter." + id,
		partitions: max(s.Partitions, 0), dir: t.TempDir(), brokers: shared.services.KafkaBrokers,
		restricted: shared.services.KafkaRestricted,
	}
	if b.partitions == 0 {
		b.partitions = 4
	}
	if s.Topics == nil {
		s.Topics = []string{"as2"}
	}
	for _, name := range s.Topics {
		b.raw = append(b.raw, "raw-ingest."+id+"."+name)
		b.clean = append(b.clean, "clean."+id+"."+name)
	}
	if s.Kafka != "" {
		b.brokers, b.restricted = []string{s.Kafka}, s.Restricted
	}
	b.connect(t)
	b.grantRights(t, s)
	t.Cleanup(func() { b.deleteTopics(t) })
	b.createDatabase(t, s.Postgres)
	b.writeConfig(t, s)
	if !s.Unprepared {
		b.migrate(t)
		b.ensureTopics(t)
	}
	return b
}

func (b *bundle) connect(t *testing.T) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.ProducerBatchMaxBytes(largestBatch), kgo.ProducerLinger(0))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	b.client, b.admin = c, kadm.NewClient(c)
}

// deleteTopics leaves a Kafka that outlives the run as it was found. A test may
// have stopped its own one by now: that is no failure.
func (b *bundle) deleteTopics(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), deleteWithin)
	defer cancel()
	if _, err := b.admin.DeleteTopics(ctx, append(b.outputs(), b.raw...)...); err != nil {
		t.Logf("deleting the bundle's topics: %v", err)
	}
}

func (b *bundle) createDatabase(t *testing.T, server *devservices.Postgres) {
	t.Helper()
	create := shared.services.CreateDatabase
	if server != nil {
		create = server.CreateDatabase
	}
	db, err := create(t.Context(), "dedup_"+b.id)
	require.NoError(t, err)
	b.db = db
	if server == nil { // a test's own server goes as a whole, and may be down by then
		t.Cleanup(func() { require.NoError(t, db.Drop(context.WithoutCancel(t.Context()))) })
	}
}

// The timeouts are short, so that a process that died or froze is replaced soon,
// and its open transaction aborted.
var configTemplate = template.Must(template.New("dedup.yaml").Parse(`log: {level: info, format: text}
kafka: {brokers: [{{.Brokers}}], group: {{.Group}}{{if .User}}, sasl: {mechanism: PLAIN, username: {{.User}}, password: {{.Password}}}{{end}}, session_timeout: 6s, rebalance_timeout: 10s, transaction_timeout: 20s}
topics:
  raw: '^raw-ingest\.({{.ID}}\..+)$'
  clean: clean.$1
  duplicates: {{.Duplicates}}
  dead_letter: {{.DeadLetter}}
  create: {partitions: {{.Partitions}}, replication: 1}
processor: {sessions: 2, slot: "0"}
redis: {addrs: ["{{.Redis}}"], prefix: "{{.Prefix}}"{{if .RedisUser}}, username: {{.RedisUser}}, password: {{.RedisPassword}}{{end}}}
postgres: {url: "{{.Postgres}}"}
{{if .Flows}}flows:
{{.Flows}}
{{end}}`))

func (b *bundle) writeConfig(t *testing.T, s setup) {
	t.Helper()
	redis := s.Redis
	if redis == "" {
		redis = shared.services.RedisAddr
	}
	var flows []string
	for line := range strings.Lines(s.Flows) {
		if line = strings.TrimSpace(line); line != "" {
			flows = append(flows, "  "+line)
		}
	}
	var text bytes.Buffer
	brokers, user := strings.Join(b.brokers, ","), ""
	if b.restricted != "" {
		brokers, user = b.restricted, devservices.UserFilter
	}
	require.NoError(t, configTemplate.Execute(&text, map[string]any{
		"ID": regexp.QuoteMeta(b.id), "Brokers": brokers, "User": user, "Password": devservices.RestrictedPassword(user), "Group": b.group,
		"RedisUser": b.redisUser, "RedisPassword": redisPassword,
		"Duplicates": b.duplicates, "DeadLetter": b.deadLetter, "Partitions": b.partitions,
		"Redis": redis, "Prefix": b.redisPrefix, "Postgres": b.db.AppURL, "Flows": strings.Join(flows, "\n"),
	}))
	b.config = filepath.Join(b.dir, "dedup.yaml")
	require.NoError(t, os.WriteFile(b.config, text.Bytes(), 0o600))
}

// migrate runs `dedup migrate up` as the database's owner.
func (b *bundle) migrate(t *testing.T) {
	t.Helper()
	b.command(t, []string{"DEDUP_POSTGRES_URL=" + b.db.OwnerURL}, "migrate", "up")
}

// ensureTopics runs `dedup topics ensure` with the raw topics' names.
func (b *bundle) ensureTopics(t *testing.T) {
	t.Helper()
	b.command(t, nil, append([]string{"topics", "ensure"}, b.raw...)...)
}

// command runs the program with the bundle's configuration and requires exit 0.
func (b *bundle) command(t *testing.T, env []string, args ...string) (stdout string) {
	t.Helper()
	r := b.try(t, env, args...)
	require.Zero(t, r.code, "dedup %s\n%s", strings.Join(args, " "), r.stderr)
	return r.stdout
}

// result of a command that ended.
type result struct {
	stdout, stderr string
	code           int
}

// try runs the program with the bundle's configuration.
func (b *bundle) try(t *testing.T, env []string, args ...string) result {
	t.Helper()
	binary, err := shared.binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeoutCause(t.Context(), commandWithin,
		fmt.Errorf("dedup %s did not end within %s", strings.Join(args, " "), commandWithin))
	defer cancel()
	c := exec.CommandContext(ctx, binary, append(args, "-c", b.config)...)
	c.Env = environment(append(b.asMaker(args), env...))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		require.NoError(t, context.Cause(ctx))
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// environment is ours without the program's own variables, which would change
// a test's settings, and with env.
func environment(env []string) (all []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "DEDUP_") {
			all = append(all, kv)
		}
	}
	return append(all, env...)
}

// query asks the bundle's database as its administrator.
func (b *bundle) query(ctx context.Context, q string, row func(pgx.Rows) error, args ...any) error {
	c, err := pgx.Connect(ctx, b.db.AdminURL)
	if err != nil {
		return fmt.Errorf("connecting to the bundle's database: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	rows, err := c.Query(ctx, q, args...)
	if err != nil {
		return fmt.Errorf("asking the bundle's database: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return fmt.Errorf("reading the database's answer: %w", err)
		}
	}
	return rows.Err()
}

// outputs are the names of all output topics.
func (b *bundle) outputs() []string {
	if len(b.perTenant) > 0 {
		return slices.Concat(b.clean, b.perTenant)
	}
	return append(slices.Clone(b.clean), b.duplicates, b.deadLetter)
}
