package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/jackc/pgx/v5"

	"dedupledger/internal/devservices"
)

const configText = `log: {level: warn, format: text}
http: {listen: ""}
kafka: {brokers: [{{.Brokers}}], group: {{.Group}}}
topics:
  raw: '^raw-ingest\.({{.ID}})$'
  clean: clean.{{.Name}}.$1
  duplicates: duplicates.{{.Name}}
  dead_letter: dead-letter.{{.Name}}
  create: {partitions: {{.Partitions}}, replication: 1}
processor: {sessions: {{.Sessions}}, slot: "0"}
redis: {addrs: ["{{.Redis}}"], prefix: "bench:{{.Name}}:"}
postgres: {url: "{{.Postgres}}"}
`

// setting is one repetition of the filter: its own database, group and outputs.
type setting struct {
	group, config, log string
	db                 *devservices.Database
	outputs            []string
}

// filter drains the topic with `dedup run`, with everything as it is by default
// but names, addresses and the number of sessions.
func (s *stage) filter(ctx context.Context, n int) (figures, error) {
	set, err := s.prepare(ctx, strconv.Itoa(n), s.create)
	if err != nil {
		return figures{}, err
	}
	defer s.dropTopics(context.WithoutCancel(ctx), set.outputs...)
	defer s.drop(ctx, set.db)
	var f figures
	if s.o.profile != "" {
		f, err = s.profiled(ctx, set)
	} else {
		f, err = s.drainWith(ctx, set.group, s.binary, []string{"run", "-c", set.config}, nil, set.log)
	}
	if err != nil {
		return figures{}, err
	}
	return f, s.checkAccounts(ctx, set.db, s.o.messages)
}

// prepare makes database and topics as an operator does.
func (s *stage) prepare(ctx context.Context, n string, create createDatabase) (*setting, error) {
	name := s.id + "-" + n
	set, err := s.prepareFor(ctx, name, s.id, partitions, create)
	if err == nil {
		set.outputs = outputsOf(name, s.id)
	}
	return set, err
}

// outputsOf are the outputs of the raw topic with this last part.
func outputsOf(name, last string) []string {
	return []string{"clean." + name + "." + last, "duplicates." + name, "dead-letter." + name}
}

// prepareFor is prepare for the raw topics whose last part the pattern matches;
// those that are named are made. All that is made has so many partitions.
func (s *stage) prepareFor(ctx context.Context, name, pattern string, count int, create createDatabase, raw ...string) (*setting, error) {
	set := &setting{
		group: "bench-filter-" + name, config: filepath.Join(s.dir, name+".yaml"), log: filepath.Join(s.dir, name+".log"),
	}
	var err error
	if set.db, err = s.databaseOn(ctx, create, "filter_"+strings.ReplaceAll(name, "-", "_")); err != nil {
		return nil, err
	}
	t, err := template.New("config").Parse(configText)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration's template: %w", err)
	}
	var text bytes.Buffer
	if err := t.Execute(&text, map[string]any{
		"Brokers": strings.Join(s.services.KafkaBrokers, ","), "Group": set.group, "ID": pattern, "Name": name,
		"Partitions": count, "Sessions": s.o.sessions, "Redis": s.services.RedisAddr, "Postgres": set.db.AppURL,
	}); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	if err := os.WriteFile(set.config, text.Bytes(), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	ensure := append([]string{"topics", "ensure", "-c", set.config}, raw...)
	if s.command(ctx, nil, ensure...) == nil {
		return set, nil
	}
	return set, s.command(ctx, nil, ensure...) // a lone broker that is busy knows a topic late; what was made is found
}

// database makes one with the schema, by `dedup migrate up` as its owner.
func (s *stage) database(ctx context.Context, name string) (*devservices.Database, error) {
	return s.databaseOn(ctx, s.create, name)
}

// createDatabase is of one of the servers.
type createDatabase func(ctx context.Context, name string) (*devservices.Database, error)

func (s *stage) databaseOn(ctx context.Context, create createDatabase, name string) (*devservices.Database, error) {
	db, err := create(ctx, "bench_"+s.id+"_"+name)
	if err != nil {
		return nil, err //nolint:wrapcheck // a sentence already
	}
	return db, s.command(ctx, []string{"DEDUP_POSTGRES_URL=" + db.OwnerURL}, "migrate", "up")
}

func (s *stage) drop(ctx context.Context, db *devservices.Database) {
	if err := db.Drop(context.WithoutCancel(ctx)); err != nil {
		say("a database was not removed: %v", err)
	}
}

func (s *stage) command(ctx context.Context, env []string, args ...string) error {
	c := exec.CommandContext(ctx, s.binary, args...)
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("dedup %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// checkAccounts compares what was decided with what was sent.
func (s *stage) checkAccounts(ctx context.Context, db *devservices.Database, messages int64) error {
	var fresh, seen, others int64
	err := onDatabase(ctx, db.AdminURL, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `select coalesce(sum(count) filter (where status = 'NEW'), 0)::bigint,
			coalesce(sum(count) filter (where status = 'SEEN'), 0)::bigint,
			coalesce(sum(count) filter (where status not in ('NEW', 'SEEN')), 0)::bigint from dedup_hour`).Scan(&fresh, &seen, &others)
	})
	if err != nil {
		return fmt.Errorf("reading the accounts: %w", err)
	}
	again := resends(messages)
	if fresh != messages-again || seen != again || others != 0 {
		return fmt.Errorf("of %d messages with %d resends %d were decided NEW, %d SEEN, %d other", messages, again, fresh, seen, others)
	}
	return nil
}
