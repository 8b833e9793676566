package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const areaDeep = "deep"

const (
	// deepPages are read at once, of 8 KiB each: some ten thousand rows.
	deepPages = 256
	// deepShown faults of each kind are kept and told one by one, the others are
	// counted: a ledger that is all faults does not fill memory.
	deepShown = 10
	deepSays  = 5 * time.Second
)

// Deep is what was found in the rows of all months.
type Deep struct {
	Rows, Overlaps, Strange, Alone int64
	Overlapping                    []Overlap // the first ones
	Digests                        []Row     // rows whose digest does not fit, the first ones
	Aliases                        []Row     // rows of aliases without the row of their primary key, the first ones
}

// Row of the ledger.
type Row struct {
	Scope, Key string
	FirstSeen  time.Time
}

// Overlap is two rows of one key that were live at the same time.
type Overlap struct {
	Row
	Second time.Time // first seen of the other
}

// Beginner is a connection that transactions begin on.
type Beginner interface {
	Querier
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// Pages are found by the place of a row in its table: there is no key that orders
// them all. Each row looks for a later one of its key that begins before it ends.
// A row that learning closed gives way to one that was first all along, so these
// two may overlap. So may one that had ended and one that was imported later: two
// systems have accepted what it tells of, each once. The row of an alias is made with
// that of its record's primary key, which may be closed before it and is never taken
// away without it: they lie in one month.
const deepSQL = `
with page as (
	select l.ctid, l.tableoid, l.h, l.scope, l.key, l.first_seen_at, least(l.closed_at, l.expires_at) as ends,
		l.closed_by is not distinct from 'learned' as gave_way, l.origin_gate,
		l.alias_of, l.origin_topic, l.origin_partition, l.origin_epoch, l.origin_offset
	from dedup_ledger l
	where l.first_seen_at >= $1 and l.first_seen_at < $2 and l.ctid >= $3::text::tid and l.ctid < $4::text::tid
), digests as (
	select p.scope, p.key, p.first_seen_at from page p
	where p.h <> ('x' || left(encode(sha256(convert_to(p.scope, 'UTF8') || '\x00'::bytea || convert_to(p.key, 'UTF8')), 'hex'), 16))::bit(64)::bigint
), twice as (
	select p.scope, p.key, p.first_seen_at, o.first_seen_at as second
	from page p join lateral (
		select o.first_seen_at from dedup_ledger o
		where o.h = p.h and o.scope = p.scope and o.key = p.key
		  and o.first_seen_at >= p.first_seen_at and o.first_seen_at < p.ends
		  and least(o.closed_at, o.expires_at) > o.first_seen_at and o.closed_by is distinct from 'learned'
		  and (o.first_seen_at > p.first_seen_at or o.ctid > p.ctid)
		  and not (o.origin_gate = 3 and p.origin_gate <> 3 and p.ends <= clock_timestamp())
		order by o.first_seen_at limit 1
	) o on true
	where not p.gave_way
), alone as (
	select p.scope, p.key, p.first_seen_at from page p
	where p.alias_of is not null and not exists (
		select from dedup_ledger o
		where o.h = ('x' || left(encode(sha256(convert_to(p.scope, 'UTF8') || '\x00'::bytea || convert_to(p.alias_of, 'UTF8')), 'hex'), 16))::bit(64)::bigint
		  and o.scope = p.scope and o.key = p.alias_of and o.alias_of is null
		  and o.first_seen_at = p.first_seen_at
		  and o.origin_topic is not distinct from p.origin_topic and o.origin_partition is not distinct from p.origin_partition
		  and o.origin_epoch is not distinct from p.origin_epoch and o.origin_offset is not distinct from p.origin_offset)
)
select 0, (select count(*) from page), '', '', null::timestamptz, null::timestamptz
union all select 1, (select count(*) from digests), '', '', null, null
union all select 2, (select count(*) from twice), '', '', null, null
union all select 5, (select count(*) from alone), '', '', null, null
union all (select 3, 0, scope, key, first_seen_at, null from digests limit $5)
union all (select 4, 0, scope, key, first_seen_at, second from twice limit $5)
union all (select 6, 0, scope, key, first_seen_at, null from alone limit $5)`

const deepMonthsSQL = `
select i.inhrelid::regclass::text, pg_relation_size(i.inhrelid) / current_setting('block_size')::bigint
from pg_inherits i where i.inhparent = 'public.dedup_ledger'::regclass and not i.inhdetachpending order by 1`

// AskDeep reads every row of every month, oldest month first, each in a snapshot
// of its own. say is told how far it is, every few seconds.
func AskDeep(ctx context.Context, q Beginner, say func(format string, args ...any)) (*Deep, error) {
	months, err := deepMonths(ctx, q)
	if err != nil {
		return nil, err
	}
	d := &Deep{}
	p := progress{say: say, last: time.Now()}
	for i := range months {
		p.total += months[i].pages
	}
	for i := range months {
		if err := d.month(ctx, q, &months[i], &p); err != nil {
			return nil, fmt.Errorf("reading %s: %w", months[i].table, err)
		}
	}
	return d, nil
}

// deepSettings are for queries over a whole month: each takes its time, and Ctrl-C
// ends it; rows of a key are found by its digest, whatever the planner makes of
// the months' sizes.
func deepSettings() []string {
	return []string{
		"set local statement_timeout = 0", "set local enable_hashjoin = off", "set local enable_mergejoin = off", "set local jit = off",
	}
}

type deepMonth struct {
	table    string
	pages    int64
	from, to time.Time
}

func deepMonths(ctx context.Context, q Querier) ([]deepMonth, error) {
	rows, err := q.Query(ctx, deepMonthsSQL)
	if err != nil {
		return nil, fmt.Errorf("listing the months: %w", err)
	}
	var all []deepMonth
	var m deepMonth
	_, err = pgx.ForEachRow(rows, []any{&m.table, &m.pages}, func() error {
		var err error
		if m.from, err = time.Parse("dedup_ledger_2006_01", m.table); err != nil {
			return fmt.Errorf("%s is no month: %w", m.table, err)
		}
		m.to = m.from.AddDate(0, 1, 0)
		all = append(all, m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the months: %w", err)
	}
	return all, nil
}

// month reads a month in pages. One snapshot: a row that is updated meanwhile
// could else move to a page that was read already.
func (d *Deep) month(ctx context.Context, q Beginner, m *deepMonth, p *progress) error {
	tx, err := q.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing was written
	for _, set := range deepSettings() {
		if _, err := tx.Exec(ctx, set); err != nil {
			return fmt.Errorf("preparing: %w", err)
		}
	}
	for page := int64(0); page < m.pages; page += deepPages {
		end := fmt.Sprintf("(%d,0)", page+deepPages)
		if page+deepPages >= m.pages {
			end = "(4294967294,0)" // it may have grown since it was measured
		}
		rows, err := tx.Query(ctx, deepSQL, m.from, m.to, fmt.Sprintf("(%d,0)", page), end, deepShown)
		if err != nil {
			return err //nolint:wrapcheck // the caller names the month
		}
		if err := d.take(rows); err != nil {
			return err
		}
		p.moved(m.table, min(deepPages, m.pages-page), d)
	}
	return nil
}

func (d *Deep) take(rows pgx.Rows) error {
	var kind int
	var n int64
	var r Row
	var first, second *time.Time
	_, err := pgx.ForEachRow(rows, []any{&kind, &n, &r.Scope, &r.Key, &first, &second}, func() error {
		if first != nil {
			r.FirstSeen = first.UTC()
		}
		switch kind {
		case 0:
			d.Rows += n
		case 1:
			d.Strange += n
		case 2:
			d.Overlaps += n
		case 3:
			d.Digests = append(d.Digests, r)
		case 4:
			d.Overlapping = append(d.Overlapping, Overlap{r, second.UTC()})
		case 5:
			d.Alone += n
		case 6:
			d.Aliases = append(d.Aliases, r)
		}
		return nil
	})
	d.Digests = slices.Clip(d.Digests[:min(len(d.Digests), deepShown)])
	d.Overlapping = slices.Clip(d.Overlapping[:min(len(d.Overlapping), deepShown)])
	d.Aliases = slices.Clip(d.Aliases[:min(len(d.Aliases), deepShown)])
	return err //nolint:wrapcheck // the caller says what for
}

type progress struct {
	say         func(format string, args ...any)
	last        time.Time
	done, total int64
}

func (p *progress) moved(table string, pages int64, d *Deep) {
	p.done += pages
	if time.Since(p.last) < deepSays {
		return
	}
	p.last = time.Now()
	p.say("deep: %s, %d%% of all months, %d rows, %d overlapping", table, 100*p.done/max(p.total, 1), d.Rows, d.Overlaps)
}

// Judge is pure.
func (d *Deep) Judge() (fs Findings) {
	const repair = "docs/operations.md#doctor"
	for _, o := range d.Overlapping {
		fs.add(Fail, areaDeep, repair, "%s %s was accepted twice within its window, at %s and at %s", o.Scope, o.Key, o.FirstSeen.Format(time.RFC3339Nano), o.Second.Format(time.RFC3339Nano))
	}
	if more := d.Overlaps - int64(len(d.Overlapping)); more > 0 {
		fs.add(Fail, areaDeep, repair, "and %d more that were accepted twice", more)
	}
	for _, r := range d.Digests {
		fs.add(Fail, areaDeep, repair, "the digest of %s %s, first seen %s, does not fit: its repeats do not find it", r.Scope, r.Key, r.FirstSeen.Format(time.RFC3339Nano))
	}
	if more := d.Strange - int64(len(d.Digests)); more > 0 {
		fs.add(Fail, areaDeep, repair, "and %d more rows whose digest does not fit", more)
	}
	for _, r := range d.Aliases {
		fs.add(Fail, areaDeep, repair, "%s %s, first seen %s, is the alias of a key that has no row: its record was registered in part", r.Scope, r.Key, r.FirstSeen.Format(time.RFC3339Nano))
	}
	if more := d.Alone - int64(len(d.Aliases)); more > 0 {
		fs.add(Fail, areaDeep, repair, "and %d more aliases of keys without a row", more)
	}
	return fs.orOK(areaDeep, "%s read: no key was accepted twice within a window, all digests fit, no alias is without its key", counted(int(d.Rows), "row"))
}
