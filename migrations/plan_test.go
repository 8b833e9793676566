package migrations_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"dedupledger/migrations"
)

// effect is what a statement really does to tables that were there before its
// transaction; months count as the table they belong to.
type effect struct {
	locks           []migrations.Lock
	scans, rewrites []string
}

// watcher is a transaction that looks at itself.
type watcher struct {
	t      *testing.T
	tx     pgx.Tx
	before map[uint32]relation
}

type relation struct {
	table string // root of its partitions
	file  uint32
	scans int64
}

const relations = `select c.oid, coalesce(pg_partition_root(c.oid), c.oid)::regclass::text, coalesce(pg_relation_filenode(c.oid), 0),
	coalesce(pg_stat_get_xact_numscans(c.oid), 0)
	from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v') and c.relname ~ '^dedup_'`

func watch(t *testing.T, conn *pgx.Conn) *watcher {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	w := &watcher{t: t, tx: tx}
	w.before = w.relations()
	return w
}

func (w *watcher) relations() map[uint32]relation {
	rows, err := w.tx.Query(w.t.Context(), relations)
	require.NoError(w.t, err)
	all := map[uint32]relation{}
	for rows.Next() {
		var oid uint32
		var r relation
		require.NoError(w.t, rows.Scan(&oid, &r.table, &r.file, &r.scans))
		all[oid] = r
	}
	require.NoError(w.t, rows.Err())
	return all
}

// strength is the order of lock modes that a plan may name.
var strength = []string{
	"ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE",
}

// run runs one statement and says what it did.
func (w *watcher) run(sql string) effect {
	w.t.Helper()
	locked, scans := w.locks(), w.relations()
	_, err := w.tx.Exec(w.t.Context(), sql)
	require.NoError(w.t, err, sql)
	var e effect
	now := w.locks()
	for table, mode := range now {
		if locked[table] != mode {
			e.locks = append(e.locks, migrations.Lock{Table: table, Mode: mode})
		}
	}
	after := w.relations()
	for oid, was := range w.before {
		is := after[oid]
		if is.scans > scans[oid].scans && !slices.Contains(e.scans, was.table) {
			e.scans = append(e.scans, was.table)
		}
		if is.file != scans[oid].file && !slices.Contains(e.rewrites, was.table) {
			e.rewrites = append(e.rewrites, was.table)
		}
	}
	return e.sorted()
}

// locks are the strongest of this transaction by table.
func (w *watcher) locks() map[string]string {
	w.t.Helper()
	rows, err := w.tx.Query(w.t.Context(), `select relation, mode from pg_locks where pid = pg_backend_pid() and locktype = 'relation'`)
	require.NoError(w.t, err)
	held := map[string]string{}
	for rows.Next() {
		var oid uint32
		var mode string
		require.NoError(w.t, rows.Scan(&oid, &mode))
		r, known := w.before[oid]
		mode = words(mode)
		if at := slices.Index(strength, mode); known && at > slices.Index(strength, held[r.table]) {
			held[r.table] = mode
		}
	}
	require.NoError(w.t, rows.Err())
	return held
}

// words turns ShareUpdateExclusiveLock into SHARE UPDATE EXCLUSIVE.
func words(mode string) string {
	var b strings.Builder
	for i, r := range strings.TrimSuffix(mode, "Lock") {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

func (e effect) sorted() effect {
	slices.SortFunc(e.locks, func(a, b migrations.Lock) int { return strings.Compare(a.Table, b.Table) })
	slices.Sort(e.scans)
	slices.Sort(e.rewrites)
	return e
}

func saidOf(s migrations.Statement) effect {
	return effect{slices.Clone(s.Locks), slices.Clone(s.Scans), slices.Clone(s.Rewrites)}.sorted()
}

// TestThePlanTellsTheTruth: each statement of each migration does to the tables
// that were there what the plan says, no more and no less.
func TestThePlanTellsTheTruth(t *testing.T) {
	t.Parallel()
	conn := connect(t, database(t)("dedup_owner"))
	_, err := conn.Exec(t.Context(), "create table dedup_migration (version_id bigint, is_applied boolean)") // goose's
	require.NoError(t, err)
	sources, err := migrations.Sources()
	require.NoError(t, err)
	for _, source := range sources {
		parts, err := migrations.Statements(source)
		require.NoError(t, err)
		w := watch(t, conn)
		for _, s := range parts {
			require.Equal(t, saidOf(s), w.run(s.SQL), "%s: %s", source.Name, s.SQL)
		}
		require.NoError(t, w.tx.Commit(t.Context()))
	}
	// The months of 00002 are there: one is taken away, and made again.
	last, err := migrations.AfterStatement()
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `do $$ begin
		execute format('drop table dedup_ledger_%1$s, dedup_sighting_%1$s', to_char(now() at time zone 'UTC' + interval '2 months', 'YYYY_MM'));
	end $$`)
	require.NoError(t, err)
	w := watch(t, conn)
	require.Equal(t, saidOf(last), w.run(last.SQL))
	require.NoError(t, w.tx.Rollback(t.Context()))
}

// TestThePlanOfWhatMayCome is the negative control: of statements that lock,
// scan and rewrite in each way, what is measured is what PostgreSQL documents,
// a statement about which nothing is said is refused, and a wrong word is seen.
func TestThePlanOfWhatMayCome(t *testing.T) {
	t.Parallel()
	db := database(t)
	require.NoError(t, migrations.Up(t.Context(), db("dedup_owner"), migrations.Options{}))
	conn := connect(t, db("dedup_owner"))
	_, err := conn.Exec(t.Context(), `insert into dedup_gap (found_at, from_offset, to_offset, partition, from_epoch, to_epoch, topic_id, kind)
		select now(), i, i + 1, 0, 0, 0, gen_random_uuid(), 'skip' from generate_series(1, 100) i`)
	require.NoError(t, err)
	for _, c := range []struct{ sql, plan string }{
		{"alter table dedup_gap add column x integer;", "locks dedup_gap ACCESS EXCLUSIVE"},
		{"alter table dedup_gap alter column partition type bigint;", "locks dedup_gap ACCESS EXCLUSIVE\n-- plan: scans dedup_gap\n-- plan: rewrites dedup_gap"},
		{"alter table dedup_gap add constraint dedup_gap_x check (to_epoch >= 0);", "locks dedup_gap ACCESS EXCLUSIVE\n-- plan: scans dedup_gap"},
		{"alter table dedup_gap add constraint dedup_gap_x check (to_epoch >= 0) not valid;", "locks dedup_gap ACCESS EXCLUSIVE"},
		{"create index dedup_gap_x on dedup_gap (topic_id);", "locks dedup_gap SHARE\n-- plan: scans dedup_gap"},
		{"create index dedup_ledger_x on dedup_ledger (flow);", "locks dedup_ledger SHARE\n-- plan: scans dedup_ledger"},
		{"update dedup_gap set note = 'x';", "locks dedup_gap ROW EXCLUSIVE\n-- plan: scans dedup_gap"},
		{"select count(*) from dedup_gap;", "scans dedup_gap"},
		{"comment on table dedup_gap is 'x';", "locks dedup_gap SHARE UPDATE EXCLUSIVE"},
	} {
		_, err := migrations.Statements(migrations.Source{Name: "00099_x.sql", SQL: "-- +goose Up\n" + c.sql})
		require.ErrorContains(t, err, "migration 00099_x.sql: a statement touches what was there before, and no `-- plan:` says how", c.sql)
		parts, err := migrations.Statements(migrations.Source{Name: "00099_x.sql", SQL: "-- plan: " + c.plan + "\n" + c.sql})
		require.NoError(t, err)
		require.Equal(t, saidOf(parts[0]), measure(t, conn, c.sql), c.sql)
		require.NotEqual(t, effect{}, measure(t, conn, c.sql), "nothing would be a lie")
	}
	_, err = migrations.Statements(migrations.Source{Name: "00099_x.sql", SQL: "-- plan: takes a while\nselect 1 from dedup_gap;"})
	require.ErrorContains(t, err, "`-- plan: takes a while` cannot be read: locks TABLE MODE, scans TABLE, rewrites TABLE or nothing")
}

// measure runs a statement and takes it back.
func measure(t *testing.T, conn *pgx.Conn, sql string) effect {
	t.Helper()
	w := watch(t, conn)
	defer func() { require.NoError(t, w.tx.Rollback(context.WithoutCancel(t.Context()))) }()
	return w.run(sql)
}

func TestThePlanSaysWhoWaits(t *testing.T) {
	t.Parallel()
	text := planned(t, database(t)("dedup_owner"))
	require.Contains(t, text, "-- >> locks, scans and rewrites no table that is in use\n")
	require.Contains(t, text, "-- >> locks dedup_ledger: SHARE UPDATE EXCLUSIVE (reading and writing go on); "+
		"locks dedup_sighting: SHARE UPDATE EXCLUSIVE (reading and writing go on)\n")
	for mode, waits := range map[string]string{"SHARE": "writing waits", "ACCESS EXCLUSIVE": "reading and writing wait"} {
		require.Equal(t, "locks x: "+mode+" ("+waits+"); scans y; rewrites z", migrations.Statement{
			Locks: []migrations.Lock{{Table: "x", Mode: mode}}, Scans: []string{"y"}, Rewrites: []string{"z"},
		}.Says())
	}
}
