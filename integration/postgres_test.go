package integration

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"dedupledger/internal/devservices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func ownPostgres(t *testing.T, settings ...string) *devservices.Postgres {
	t.Helper()
	pg, err := shared.services.StartPostgres(t.Context(), settings...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Close()) })
	return pg
}

// aliveFor requires that /healthz is 200 for so long: it never looks at the
// stores.
func (f *filter) aliveFor(t *testing.T, d time.Duration) {
	t.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.child.Done():
			require.FailNow(t, "the filter ended")
		case <-end.C:
			return
		case <-tick.C:
			require.Equal(t, http.StatusOK, must(f.get(t.Context(), "/healthz")))
		}
	}
}

// TestPostgresDownTwentySeconds: the filter stands still, says so, and goes on
// by itself; nothing is lost, nothing passes meanwhile.
// Fault card: F03.
func TestPostgresDownTwentySeconds(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name     string
		down, up func(context.Context, *devservices.Postgres) error
	}{
		{"stopped", func(ctx context.Context, pg *devservices.Postgres) error { return pg.Stop(ctx) }, startAgain},
		{"killed", func(_ context.Context, pg *devservices.Postgres) error { return pg.Kill() }, startAgain},
		{
			"frozen", func(_ context.Context, pg *devservices.Postgres) error { return pg.Pause() },
			func(_ context.Context, pg *devservices.Postgres) error { return pg.Continue() },
		},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			rng := seeded(t)
			pg := ownPostgres(t)
			b := newBundle(t, setup{Postgres: pg})
			f := b.start(t, 0)
			l := b.startLoad(t, rng, "p", 4)
			l.passMore(t, 200)
			require.NoError(t, way.down(t.Context(), pg))
			f.aliveFor(t, 20*time.Second)
			f.awaitReason(t, `"postgres":"no answer for`)
			f.awaitMetric(t, "dedup_ledger_blocked_seconds", nil, func(v float64) bool { return v > 0 })
			passed := len(l.k.seen)
			l.k.follow(t, time.Second)
			stands := len(l.k.seen)
			l.k.follow(t, time.Second)
			require.Len(t, l.k.seen, stands, "outputs while Postgres is down (%d when it went)", passed)
			require.NoError(t, way.up(t.Context(), pg))
			f.awaitReady(t)
			l.passMore(t, 300)
			l.end(t)
			b.check(t)
			f.term(t)
			b.checkStopped(t)
		})
	}
}

func startAgain(ctx context.Context, pg *devservices.Postgres) error { return pg.Start(ctx) }

// TestStopWhilePostgresIsDown: SIGTERM is obeyed although the ledger is silent.
func TestStopWhilePostgresIsDown(t *testing.T) {
	t.Parallel()
	pg := ownPostgres(t)
	b := newBundle(t, setup{Postgres: pg})
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 50)...)
	b.check(t)
	require.NoError(t, pg.Stop(t.Context()))
	b.produce(t, orders("acme:edifact", 25, 50)...)
	f.awaitNotReady(t)
	f.term(t)
	require.NoError(t, pg.Start(t.Context()))
	g := b.start(t, 0)
	b.produce(t, b.markers("last")...)
	b.check(t)
	g.term(t)
	b.checkStopped(t)
}

// TestConnectionsKilled: every connection of the filter is cut again and again
// in the middle of its work.
// Fault card: F03.
func TestConnectionsKilled(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	f := b.start(t, 0, "DEDUP_PROCESSOR_BATCH_RECORDS=100", "DEDUP_PROCESSOR_CHUNK_RECORDS=20")
	l := b.startLoad(t, rng, "c", 8)
	killed := 0
	for range 20 {
		l.passMore(t, 1+rng.IntN(150))
		killed += ask[int](t, b, `select count(pg_terminate_backend(pid)) from pg_stat_activity
			where datname = current_database() and usename = 'dedup_app'`)
	}
	require.Positive(t, killed)
	l.end(t)
	b.check(t)
	f.awaitReady(t)
	f.term(t)
	b.checkStopped(t)
}

// TestIsolationOfTheDatabase: a database, and its roles, that default to
// repeatable read do not reach our connections; under it the functions refuse.
func TestIsolationOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, setup{Topics: []string{"as2", "as4"}, Partitions: 2, Unprepared: true})
			b.asOwner(t, `alter database `+pgx.Identifier{b.db.Name}.Sanitize()+` set default_transaction_isolation = '`+level+`'`)
			require.Equal(t, level, ask[string](t, b, `show default_transaction_isolation`))
			b.migrate(t)
			b.ensureTopics(t)
			f, g := b.start(t, 0), b.start(t, 1)
			// Both topics of one flow: two sessions meet at one scope.
			var batch []message
			for i, m := range orders("acme:edifact", 0, 300) {
				m.Topic, m.Partition = i%2, int32(i/2%2)
				batch = append(batch, m)
			}
			b.produce(t, batch...)
			b.check(t)
			b.requireRefusal(t, "dedup_register_3", level)
			b.requireRefusal(t, "dedup_reject_2", level)
			b.requireRefusal(t, "dedup_learn_3", level)
			f.term(t)
			g.term(t)
			b.checkStopped(t)
		})
	}
}

// requireRefusal calls a function by hand under a level that it must refuse.
func (b *bundle) requireRefusal(t *testing.T, function, level string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), b.db.AppURL)
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	var args int
	require.NoError(t, c.QueryRow(t.Context(), `select pronargs from pg_proc where proname = $1`, function).Scan(&args))
	nulls := strings.TrimSuffix(strings.Repeat("null,", args), ",")
	_, err = c.Exec(t.Context(), "select "+function+"("+nulls+")")
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused, "%s under %s", function, level)
	require.Equal(t, "DL001", refused.Code, refused.Message)
	require.Contains(t, refused.Message, level)
}

// TestMonthMissing: F06. The partitions of this month are made on demand.
func TestMonthMissing(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	f := b.start(t, 0)
	b.produce(t, traffic(rng, "before", 300)...)
	b.check(t)
	b.asOwner(t, `do $$ declare t text; begin
		for t in select c.oid::regclass from pg_inherits i join pg_class c on c.oid = i.inhrelid
		         where i.inhparent in ('dedup_ledger'::regclass, 'dedup_sighting'::regclass) and c.relkind = 'r' loop
			execute 'drop table ' || t;
		end loop; end $$`)
	b.produce(t, traffic(rng, "after", 300)...)
	b.check(t)
	require.Positive(t, ask[int](t, b, `select count(*) from dedup_ledger`))
	require.Equal(t, 8, ask[int](t, b, `select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent in ('dedup_ledger'::regclass, 'dedup_sighting'::regclass) and c.relkind = 'r'`), "this month and three ahead")
	f.term(t)
	b.checkStopped(t)
}

// TestMigrationsAtOnce: several `migrate up` and several filters at the first
// start of a system.
func TestMigrationsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Unprepared: true})
	binary, err := shared.binary()
	require.NoError(t, err)
	var g errgroup.Group
	for i := range 4 {
		g.Go(func() error {
			c, err := devservices.StartChild(binary, []string{"migrate", "up", "-c", b.config},
				[]string{"DEDUP_POSTGRES_URL=" + b.db.OwnerURL}, b.dir+"/migrate-"+string(rune('0'+i))+".log")
			if err != nil {
				return err
			}
			<-c.Done()
			if c.ExitCode() != 0 {
				return errors.New("migrate up: " + c.Log())
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.NotContains(t, b.command(t, nil, "migrate", "status"), "missing")
	b.ensureTopics(t)
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 50)...)
	b.migrate(t) // once more, under a running filter
	b.produce(t, orders("acme:edifact", 25, 50)...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
