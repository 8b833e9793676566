package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"
)

// shortWindow is that of the flows named short.
const (
	shortWindow = "5s"
	shortFor    = 5 * time.Second
)

// largest is the most a record may have; the traffic's large ones have more.
const largest = 64 << 10

// The timeouts are short, so that a campaign sees many of them end.
var configuration = template.Must(template.New("dedup.yaml").Parse(`log: {level: info, format: text}
kafka: {brokers: ["{{.Brokers}}"], group: {{.Group}}, session_timeout: 6s, rebalance_timeout: 10s, transaction_timeout: 15s}
topics:
  raw: '^raw-ingest\.({{.ID}}\..+)$'
  clean: clean.$1
  duplicates: duplicates.{{.ID}}
  dead_letter: dead-letter.{{.ID}}
  max_record_bytes: 64KiB
  create: {partitions: {{.Partitions}}, replication: 3}
processor: {sessions: 2, slot: auto}
redis: {addrs: [{{.Redis}}], {{if .Sentinel}}master_name: {{.Sentinel}}, {{end}}prefix: "dedup:{{.ID}}:"}
postgres: {url: "{{.Postgres}}", pool: {max: 6}}
flows:
  - {match: "s*:short", window: {{.Window}}}
  - {match: "t*:aliased", extractors: [edifact], aliases: [header]}
  - {match: "t*:watched", mode: observe}
`))

// prepare writes the configuration, migrates and makes the topics.
func (s *stage) prepare(ctx context.Context) error {
	if err := s.configure(); err != nil {
		return err
	}
	if _, err := s.command(ctx, []string{"DEDUP_POSTGRES_URL=" + s.url("dedup_owner", s.primary.Addr())}, "migrate", "up"); err != nil {
		return err
	}
	_, err := s.command(ctx, nil, append([]string{"topics", "ensure"}, s.raw...)...)
	return err
}

// configure writes the configuration.
func (s *stage) configure() error {
	var addrs []string
	name := ""
	if s.o.cluster {
		for _, r := range s.redis {
			addrs = append(addrs, fmt.Sprintf("%q", r.Addr()))
		}
	} else {
		addrs, name = []string{fmt.Sprintf("%q", s.sentinel.Addr())}, sentinel
	}
	var text bytes.Buffer
	err := configuration.Execute(&text, map[string]any{
		"ID": regexp.QuoteMeta(s.id), "Brokers": strings.Join(s.kafka.Addrs(), `", "`), "Group": s.group, "Partitions": partitions,
		"Redis": strings.Join(addrs, ", "), "Sentinel": name, "Window": shortWindow,
		"Postgres": s.url("dedup_app", s.primary.Addr()),
	})
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if err := os.WriteFile(s.config(), text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

func (s *stage) config() string { return filepath.Join(s.dir, "dedup.yaml") }

func (s *stage) url(user, addr string) string {
	return "postgres://" + user + "@" + addr + "/" + s.database + "?sslmode=disable"
}

// command runs the program to its end, on what is the primary now.
func (s *stage) command(ctx context.Context, env []string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, s.program, append(args, "-c", s.config())...)
	s.pgMu.Lock()
	at := s.primary.Addr()
	s.pgMu.Unlock()
	c.Env = environment(append([]string{"DEDUP_POSTGRES_URL=" + s.url("dedup_app", at)}, env...))
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("dedup %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// environment is ours without the program's own variables, and env.
func environment(env []string) (all []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "DEDUP_") {
			all = append(all, kv)
		}
	}
	return append(all, env...)
}
