package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func server() Server {
	return Server{
		Version: "17.6", Number: "170006", Fsync: true, FullPageWrites: true, Autovacuum: true,
		SynchronousCommit: "on", Isolation: "read committed", JIT: "off", MaxWAL: 8 << 30, SharedBuffers: 4 << 30, CheckpointSeconds: 1800,
		MaxConnections: 300, Reserved: 3, Used: 10, Role: "dedup_app", SynchronousNames: "ANY 1 (one, two)", StandbysSeen: true, StandbysAttached: 1, Pool: 12,
	}
}

func TestJudgeServer(t *testing.T) {
	t.Parallel()
	healthy := server()
	requireOne(t, healthy.Judge(), "ok postgres 17.6; fsync on, synchronous_commit on, max_wal_size 8.0 GiB, shared_buffers 4.0 GiB; synchronous standby of ANY 1 (one, two)", "")
	for name, c := range map[string]struct {
		change func(*Server)
		level  Level
		text   string
		repair string
	}{
		"old":                {func(s *Server) { s.Version, s.Number = "14.9", "140009" }, Fail, "version 14.9: PostgreSQL 15 or later is needed", "upgrade it"},
		"fsync":              {func(s *Server) { s.Fsync = false }, Fail, "fsync is off", "alter system set fsync = 'on'; select pg_reload_conf()"},
		"full_page_writes":   {func(s *Server) { s.FullPageWrites = false }, Fail, "full_page_writes is off", "alter system set full_page_writes = 'on'; select pg_reload_conf()"},
		"autovacuum":         {func(s *Server) { s.Autovacuum = false }, Fail, "autovacuum is off", "alter system set autovacuum = 'on'; select pg_reload_conf()"},
		"synchronous_commit": {func(s *Server) { s.SynchronousCommit = "off" }, Fail, "synchronous_commit is off for the filter's connections", "alter role dedup_app set synchronous_commit = on"},
		"isolation":          {func(s *Server) { s.Isolation = "serializable" }, Fail, "are serializable", "alter role dedup_app set default_transaction_isolation = 'read committed'"},
		"jit":                {func(s *Server) { s.JIT = "on" }, Warn, "jit is on", "alter role dedup_app set jit = off"},
		"max_wal_size":       {func(s *Server) { s.MaxWAL = 1 << 30 }, Warn, "max_wal_size 1.0 GiB", "alter system set max_wal_size = '8GB'; select pg_reload_conf()"},
		"checkpoint_timeout": {func(s *Server) { s.CheckpointSeconds = 300 }, Warn, "checkpoint_timeout 300 s", "alter system set checkpoint_timeout = '30min'; select pg_reload_conf()"},
		"shared_buffers":     {func(s *Server) { s.SharedBuffers = 128 << 20 }, Warn, "shared_buffers 128.0 MiB", "a quarter"},
		"connections":        {func(s *Server) { s.Used = 290 }, Warn, "7 connections are left of 300, fewer than one more process takes (13)", "raise max_connections, or lower postgres.pool.max"},
		"no standby":         {func(s *Server) { s.SynchronousNames = "" }, Warn, "no synchronous standby: a failover may lose the last commits", "attach a standby and name it in synchronous_standby_names"},
		"demanded":           {func(s *Server) { s.SynchronousNames, s.Required = "", true }, Fail, "no synchronous standby", "attach a standby"},
		"unseen":             {func(s *Server) { s.StandbysSeen, s.StandbysAttached = false, 0 }, Warn, "whether one of them is attached dedup_app may not see", "grant pg_read_all_stats to dedup_app"},
		"detached":           {func(s *Server) { s.StandbysAttached = 0 }, Fail, "is attached: commits wait for it", "start one of the standbys that are named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server()
			c.change(&s)
			var faults Findings
			for _, f := range s.Judge() {
				if f.Level != OK {
					faults = append(faults, f)
				}
			}
			require.Len(t, faults, 1, "%v", faults)
			require.Equal(t, c.level, faults[0].Level)
			require.Contains(t, faults[0].Text, c.text)
			require.Contains(t, faults[0].Repair, c.repair)
		})
	}
}

func TestJudgeMonths(t *testing.T) {
	t.Parallel()
	months := func(now time.Time, but ...string) Months {
		m := Months{Now: now, Attached: map[string]bool{}}
		for i := range 4 {
			for _, table := range []string{"dedup_ledger", "dedup_sighting"} {
				m.Attached[table+now.AddDate(0, i, 1-now.Day()).Format("_2006_01")] = true
			}
		}
		for _, b := range but {
			delete(m.Attached, b)
		}
		return m
	}
	late := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	m := months(late)
	requireOne(t, m.Judge(3), "ok months 2026-11 ... 2027-02", "")
	m = months(late, "dedup_ledger_2026_12")
	requireOne(t, m.Judge(3), "FAIL months dedup_ledger_2026_12 is missing: a registration has to make it, and waits for that", "dedup migrate up")
	m = months(late, "dedup_sighting_2027_02")
	requireOne(t, m.Judge(3), "warn months dedup_sighting_2027_02 is missing: a registration has to make it, and waits for that", "dedup migrate up")
	m = months(late)
	m.Pending = []string{"dedup_ledger_2025_01"}
	requireOne(t, m.Judge(3), "FAIL months detaching dedup_ledger_2025_01 was interrupted: no other month can leave until it is finished",
		"alter table dedup_ledger detach partition dedup_ledger_2025_01 finalize")
}

func TestJudgeWitnesses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	name := func(id string) string {
		if id == "id-1" {
			return "raw-ingest.as2"
		}
		return id
	}
	requireOne(t, (&Witnesses{Now: now}).Judge(name), "ok witness Redis never knew of a message that PostgreSQL did not", "")
	at, last := now.Add(-time.Hour), "kafka:id-1/3/7/8804 seen 2026-11-30T10:00:00Z"
	w := Witnesses{Kafka: 2, API: 1, LastAt: &at, Last: &last, Now: now}
	requireOne(t, w.Judge(name), "warn witness Redis held live facts of 3 messages without a row in PostgreSQL, last raw-ingest.as2/3/8804 at 2026-11-30T11:00:00Z: did it lose commits? docs/operations.md#redis-is-down-empty-or-full", "")
	at = now.AddDate(0, -2, 0)
	requireOne(t, w.Judge(name), "ok witness 3 live facts without a row in PostgreSQL, the last long ago, at 2026-09-30T12:00:00Z", "")
}

func TestJudgeGaps(t *testing.T) {
	t.Parallel()
	name := func(string) string { return "raw-ingest.as2" }
	requireOne(t, JudgeGaps(nil, name), "ok gaps every record that came was handled", "")
	g := Gaps{TopicID: "id", Kind: "log_start", Count: 1, Offsets: 7, LastAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Age: time.Hour}
	requireOne(t, JudgeGaps([]Gaps{g}, name), "warn gaps raw-ingest.as2: 7 offsets of records deleted before they were read in 1 gap, the last found at 2026-11-30T12:00:00Z: docs/operations.md#records-without-an-output", "")
	g.Age = 2 * fresh
	require.Equal(t, OK, JudgeGaps([]Gaps{g}, name)[0].Level)
}

func TestJudgeSpread(t *testing.T) {
	t.Parallel()
	requireOne(t, (&Spread{}).Judge(), "ok order every repeat of the last 7 days came through the partition of its first copy", "")
	s := Spread{Repeats: 2, First: Row{Scope: "acme:as2", Key: "hdr:1"}, Were: 3, Are: 7}
	fs := s.Judge()
	require.Equal(t, Warn, fs[0].Level)
	require.Equal(t, "2 repeats of the last 7 days came through another partition than their first copy, as acme:as2 hdr:1 through 3 and 7: verdicts stay right, the order of these messages does not", fs[0].Text)
	s.Repeats = spreadMost
	require.Contains(t, s.Judge()[0].Text, "at least 1000 repeats")
}

func TestJudgeDeep(t *testing.T) {
	t.Parallel()
	requireOne(t, (&Deep{Rows: 7}).Judge(), "ok deep 7 rows read: no key was accepted twice within a window, all digests fit, no alias is without its key", "")
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	row := Row{"acme:as2", "hdr:1", at}
	d := Deep{Rows: 9, Overlaps: 3, Strange: 1, Overlapping: []Overlap{{row, at.Add(time.Minute)}}, Digests: []Row{row}, Alone: 3, Aliases: []Row{row}}
	texts, _ := lines(d.Judge())
	require.Equal(t, []string{
		"FAIL deep acme:as2 hdr:1 was accepted twice within its window, at 2026-11-30T12:00:00Z and at 2026-11-30T12:01:00Z",
		"FAIL deep and 2 more that were accepted twice",
		"FAIL deep the digest of acme:as2 hdr:1, first seen 2026-11-30T12:00:00Z, does not fit: its repeats do not find it",
		"FAIL deep acme:as2 hdr:1, first seen 2026-11-30T12:00:00Z, is the alias of a key that has no row: its record was registered in part",
		"FAIL deep and 2 more aliases of keys without a row",
	}, texts)
}
