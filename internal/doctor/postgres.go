package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const areaPostgres = "postgres"

// Querier is a connection as the filter makes it.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Server is how PostgreSQL is set up.
type Server struct {
	Version, Number                          string // 15.20, 150020
	Fsync, FullPageWrites, Autovacuum        bool
	SynchronousCommit, Isolation, JIT        string // of a connection of the filter's
	MaxWAL, SharedBuffers, CheckpointSeconds int64  // bytes, bytes, seconds
	MaxConnections, Reserved, Used           int64
	Role, SynchronousNames                   string
	StandbysSeen                             bool // the role may see which are attached
	StandbysAttached                         int  // synchronous ones
	Required                                 bool // postgres.require_sync_standby
	Pool                                     int  // connections of one process
}

const serverSQL = `
select split_part(current_setting('server_version'), ' ', 1), current_setting('server_version_num'),
	current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean, current_setting('autovacuum')::boolean,
	current_setting('synchronous_commit'), current_setting('transaction_isolation'), current_setting('jit'),
	pg_size_bytes(current_setting('max_wal_size')), pg_size_bytes(current_setting('shared_buffers')),
	extract(epoch from current_setting('checkpoint_timeout')::interval)::bigint,
	current_setting('max_connections')::bigint, current_setting('superuser_reserved_connections')::bigint,
	(select count(*) from pg_stat_activity where backend_type = 'client backend' or backend_type is null),
	current_user, current_setting('synchronous_standby_names'), pg_has_role(current_user, 'pg_read_all_stats', 'usage'),
	(select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum') and state = 'streaming')`

// AskServer reads the settings.
func AskServer(ctx context.Context, q Querier) (s Server, err error) {
	err = q.QueryRow(ctx, serverSQL).Scan(&s.Version, &s.Number, &s.Fsync, &s.FullPageWrites, &s.Autovacuum,
		&s.SynchronousCommit, &s.Isolation, &s.JIT, &s.MaxWAL, &s.SharedBuffers, &s.CheckpointSeconds,
		&s.MaxConnections, &s.Reserved, &s.Used, &s.Role, &s.SynchronousNames, &s.StandbysSeen, &s.StandbysAttached)
	if err != nil {
		return Server{}, fmt.Errorf("reading PostgreSQL's settings: %w", err)
	}
	return s, nil
}

// What the ledger was measured with, and what it needs.
const (
	oldestPostgres     = "150000"
	leastWAL           = 8 << 30
	leastCheckpoint    = 30 * 60
	leastSharedBuffers = 128<<20 + 1 // more than the default
)

// Judge is pure.
func (s *Server) Judge() (fs Findings) {
	set := func(name, value string) string {
		return fmt.Sprintf("alter system set %s = '%s'; select pg_reload_conf()", name, value)
	}
	if s.Number < oldestPostgres {
		fs.add(Fail, areaPostgres, "upgrade it", "version %s: PostgreSQL 15 or later is needed", s.Version)
	}
	if !s.Fsync {
		fs.add(Fail, areaPostgres, set("fsync", "on"), "fsync is off: a crash of the machine loses or breaks the ledger")
	}
	if !s.FullPageWrites {
		fs.add(Fail, areaPostgres, set("full_page_writes", "on"), "full_page_writes is off: a crash of the machine may break pages of the ledger")
	}
	if !s.Autovacuum {
		fs.add(Fail, areaPostgres, set("autovacuum", "on"), "autovacuum is off: updated rows are never cleared, and PostgreSQL stops at the end of its transaction ids")
	}
	s.judgeConnection(&fs)
	if s.MaxWAL < leastWAL {
		fs.add(Warn, areaPostgres, set("max_wal_size", "8GB"), "max_wal_size %s: after each checkpoint whole pages go to the log again, so few are better", bytes(s.MaxWAL))
	}
	if s.CheckpointSeconds < leastCheckpoint {
		fs.add(Warn, areaPostgres, set("checkpoint_timeout", "30min"), "checkpoint_timeout %d s: likewise", s.CheckpointSeconds)
	}
	if s.SharedBuffers < leastSharedBuffers {
		fs.add(Warn, areaPostgres, "alter system set shared_buffers to a quarter of the machine's memory, and restart PostgreSQL", "shared_buffers %s: the indexes of the newest months should fit", bytes(s.SharedBuffers))
	}
	if free := s.MaxConnections - s.Reserved - s.Used; free < int64(s.Pool)+1 {
		fs.add(Warn, areaPostgres, "raise max_connections, or lower postgres.pool.max", "%d connections are left of %d, fewer than one more process takes (%d)", max(free, 0), s.MaxConnections, s.Pool+1)
	}
	s.judgeStandby(&fs)
	standby := "synchronous standby of " + s.SynchronousNames
	if s.SynchronousNames == "" {
		standby = "no synchronous standby"
	}
	if fs.Count(Fail) == 0 {
		ok := Findings{}.orOK(areaPostgres, "%s; fsync on, synchronous_commit %s, max_wal_size %s, shared_buffers %s; %s", s.Version, s.SynchronousCommit, bytes(s.MaxWAL), bytes(s.SharedBuffers), standby)
		fs = append(ok, fs...)
	}
	return fs
}

// judgeConnection looks at what a connection of the filter's has: a pooler may
// have swallowed what the filter sends with its start-up.
func (s *Server) judgeConnection(fs *Findings) {
	role := func(setting string) string { return fmt.Sprintf("alter role %s set %s", s.Role, setting) }
	if s.SynchronousCommit == "off" {
		fs.add(Fail, areaPostgres, role("synchronous_commit = on"), "synchronous_commit is off for the filter's connections: a crash of PostgreSQL loses verdicts")
	}
	if s.Isolation != "read committed" {
		fs.add(Fail, areaPostgres, role("default_transaction_isolation = 'read committed'"), "transactions of the filter's connections are %s: the ledger's functions refuse that", s.Isolation)
	}
	if s.JIT == "on" {
		fs.add(Warn, areaPostgres, role("jit = off"), "jit is on for the filter's connections: compiling a plan takes longer than running it")
	}
}

func (s *Server) judgeStandby(fs *Findings) {
	level := Warn
	if s.Required {
		level = Fail // postgres.require_sync_standby: the filter does not start
	}
	const consequence = "a failover may lose the last commits (learned again from the outputs; docs/operations.md#synchronous-standby)"
	switch {
	case s.SynchronousNames == "" || s.SynchronousCommit == "local":
		fs.add(level, areaPostgres, "attach a standby and name it in synchronous_standby_names", "no synchronous standby: %s", consequence)
	case !s.StandbysSeen:
		fs.add(level, areaPostgres, "grant pg_read_all_stats to "+s.Role, "synchronous_standby_names is %q; whether one of them is attached %s may not see", s.SynchronousNames, s.Role)
	case s.StandbysAttached == 0:
		fs.add(Fail, areaPostgres, "start one of the standbys that are named", "none of synchronous_standby_names %q is attached: commits wait for it, and the filter stands still", s.SynchronousNames)
	}
}
