package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dedupledger/ledger"
)

// verdicts by their text in tables.
var verdicts = map[string]ledger.Verdict{"NEW": ledger.New, "SEEN": ledger.Seen, "DRIFT": ledger.Drift, "INVALID": ledger.Invalid}

// hours are the accounts of scopes in dedup_hour.
func (w *world) hours(ctx context.Context, scopes ...string) (map[account]tally, error) {
	rows, err := w.admin.Query(ctx, `select scope, status, sum(count)::bigint, sum(bytes)::bigint from dedup_hour
		where scope = any($1) group by 1, 2 having sum(count) <> 0 or sum(bytes) <> 0`, scopes)
	if err != nil {
		return nil, fmt.Errorf("reading accounts: %w", err)
	}
	all := map[account]tally{}
	var a account
	var status string
	var n tally
	_, err = pgx.ForEachRow(rows, []any{&a.scope, &status, &n.count, &n.bytes}, func() error {
		a.status = verdicts[status]
		all[a] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading accounts: %w", err)
	}
	return all, nil
}

// audit holds the accounts in PostgreSQL against the outputs. All that was sent
// has its output now, so both are exact.
func (l *lane) audit(ctx context.Context) error {
	hours, err := l.world.hours(ctx, l.scopes...)
	if err != nil {
		return err
	}
	if want := l.books.of(l.scopes...); !maps.Equal(hours, want) {
		return fmt.Errorf("wrong: accounts: dedup_hour has %v, outputs are %v", hours, want)
	}
	var sightings int64
	if err := l.world.admin.QueryRow(ctx, `select count(*) from dedup_sighting where scope = any($1)`, l.scopes).Scan(&sightings); err != nil {
		return fmt.Errorf("counting sightings: %w", err)
	}
	want := int64(0)
	for a, n := range hours {
		if a.status != ledger.New {
			want += n.count
		}
	}
	if sightings != want {
		return fmt.Errorf("wrong: accounts: %d sightings, outputs make %d", sightings, want)
	}
	return l.auditPositions(ctx)
}

type position struct{ w, d int64 }

// auditPositions: the group's offset is behind the last record and W and the
// offset are not behind D. W may be behind the offset: it moves over control
// records too, which no transaction commits.
func (l *lane) auditPositions(ctx context.Context) error {
	first, err := l.positions(ctx)
	if err != nil {
		return err
	}
	offsets, err := l.adm.FetchOffsets(ctx, group)
	if err = errors.Join(err, offsets.Error()); err != nil {
		return fmt.Errorf("reading the group's offsets: %w", err)
	}
	then, err := l.positions(ctx)
	if err != nil {
		return err
	}
	for topic, ps := range l.books.lasts {
		for p, last := range ps {
			k := ledger.Partition{Topic: l.ids[topic], Partition: p}
			o, ok := offsets.Lookup(topic, p)
			at := fmt.Sprintf("%s/%d: W %d, the group's offset %d, D %d, last record %d", topic, p, first[k].w, o.At, then[k].d, last)
			switch {
			case !ok || o.At <= last:
				return fmt.Errorf("wrong: positions: committed before the end: %s", at)
			case first[k].w > then[k].d || o.At > then[k].d:
				return fmt.Errorf("wrong: positions: W or the offset is behind D: %s", at)
			}
		}
	}
	return nil
}

func (l *lane) positions(ctx context.Context) (map[ledger.Partition]position, error) {
	rows, err := l.world.admin.Query(ctx, `select topic_id, partition, w_offset, d_offset from dedup_position where topic_id = any($1)`, l.topicIDs())
	if err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	all := map[ledger.Partition]position{}
	var id uuid.UUID
	var k ledger.Partition
	var at position
	_, err = pgx.ForEachRow(rows, []any{&id, &k.Partition, &at.w, &at.d}, func() error {
		k.Topic = ledger.TopicID(id)
		all[k] = at
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	return all, nil
}

func (l *lane) topicIDs() (ids []uuid.UUID) {
	for _, id := range l.ids {
		ids = append(ids, uuid.UUID(id))
	}
	return ids
}

// auditRows, at the lane's end: who registered an open row is in clean, and who is
// in clean has one; whoever clean refused has a closed one; there are as many
// repeats as went to duplicates; and what Redis remembers of a key is in clean.
// A row whose window passed before its record was committed stands twice: the
// record came again and registered anew.
func (l *lane) auditRows(ctx context.Context) error {
	open, closed := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	rows, err := l.world.admin.Query(ctx, `select origin_topic, origin_partition, origin_epoch, origin_offset, coalesce(closed_by, ''),
		retry_count, drift_count from dedup_ledger where scope = any($1)`, l.scopes)
	if err != nil {
		return fmt.Errorf("reading rows: %w", err)
	}
	var topic uuid.UUID
	var o ledger.Origin
	var by string
	var n, m, retries, drifts int64
	_, err = pgx.ForEachRow(rows, []any{&topic, &o.Partition, &o.Epoch, &o.Offset, &by, &n, &m}, func() error {
		o.Topic = ledger.TopicID(topic)
		if by == refused {
			closed[o.ID()] = true
			return nil
		}
		open[o.ID()] = true
		retries, drifts = retries+n, drifts+m
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading rows: %w", err)
	}
	inClean, wasRefused, perhapsRepeats, repeats, changed := l.books.sums()
	if l.learns {
		wasRefused = int64(len(closed)) // an output that tells of a refusal makes no row
	}
	had := int64(len(closed)) // a repeat that was refused has no row
	if !maps.Equal(open, inClean) || had > wasRefused || had < wasRefused-perhapsRepeats || retries != repeats || drifts != changed {
		return fmt.Errorf("wrong: rows: %d open, %d closed, %d repeats, %d DRIFT; outputs: %d NEW, %d refused, %d repeats, %d DRIFT",
			len(open), len(closed), retries, drifts, len(inClean), wasRefused, repeats, changed)
	}
	for k, outs := range l.books.accepted {
		f, found, err := l.world.hot.Get(ctx, k.scope, keyPrefix+k.key)
		if err != nil {
			return fmt.Errorf("asking Redis: %w", err)
		}
		if found && !slices.ContainsFunc(outs, func(o *outcome) bool { return f.Origin.ID() == o.ID }) {
			return fmt.Errorf("wrong: Redis remembers %s %s of offset %d, which is not in clean", k.scope, k.key, f.Origin.Offset)
		}
	}
	return nil
}

// move replaces what a set of tables has of the lane by what another has: so what
// PostgreSQL knows is kept, and PostgreSQL is put back.
func (l *lane) move(ctx context.Context, from, to string) error {
	if err := l.empty(to); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, l.world.admin, func(tx pgx.Tx) error {
		for _, table := range tables {
			where, of := l.own(table)
			insert := "insert into " + to + "_" + table
			if table == "gap" {
				insert += " overriding system value"
			}
			if _, err := tx.Exec(ctx, insert+" select * from "+from+"_"+table+where, of); err != nil {
				return fmt.Errorf("filling %s_%s: %w", to, table, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("putting PostgreSQL back: %w", err)
	}
	return nil
}

// empty makes a set of tables have nothing of the lane.
func (l *lane) empty(set string) error {
	for _, table := range tables {
		where, of := l.own(table)
		if _, err := l.world.admin.Exec(l.ctx, "delete from "+set+"_"+table+where, of); err != nil {
			return fmt.Errorf("emptying %s_%s: %w", set, table, err)
		}
	}
	return nil
}

// own tells the rows of the lane in a table.
func (l *lane) own(table string) (where string, of any) {
	if table == "position" || table == "gap" {
		return " where topic_id = any($1)", l.topicIDs()
	}
	return " where scope = any($1)", l.scopes
}
