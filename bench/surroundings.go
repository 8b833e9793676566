package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5"
)

// surroundings are what figures depend on beside the program.
type surroundings struct {
	Services string `json:"services"`
	Postgres string `json:"postgres"`
	Machine  string `json:"machine"`
}

const disturbed = "other load on the machine disturbs: compare figures of one run only"

func (s *stage) surroundings(ctx context.Context) surroundings {
	machine := fmt.Sprintf("%d cores, %s, %s %s/%s", runtime.NumCPU(), processorName(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		machine += ", load average " + strings.Join(strings.Fields(string(load))[:3], " ") + " before the first phase"
	}
	return surroundings{Services: s.services.Describe(), Postgres: s.settings(ctx), Machine: machine}
}

// settings are those of PostgreSQL that change the figures most.
func (s *stage) settings(ctx context.Context) string {
	var text string
	err := s.onPostgres(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `select 'port ' || current_setting('port') || ': ' ||
			string_agg(name || '=' || current_setting(name), ' ' order by name) from pg_settings
			where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'max_wal_size', 'shared_buffers', 'wal_buffers', 'wal_compression', 'jit')`).Scan(&text)
	})
	if err != nil {
		return err.Error()
	}
	return text
}

func processorName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
