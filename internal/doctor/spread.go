package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const areaOrder = "order"

// spreadMost bounds what is looked for: more say nothing more.
const spreadMost = 1000

// Spread is repeats of the last days that came through another partition of the
// raw topic than their first.
type Spread struct {
	Repeats int // at most spreadMost
	First   Row // of the first of them
	// Were and Are are the partitions of its first copy and of the repeat.
	Were, Are int32
}

const spreadSQL = `
select s.scope, s.key, l.first_seen_at, l.origin_partition, s.origin_partition
from dedup_sighting s join lateral (
	select l.first_seen_at, l.origin_partition from dedup_ledger l
	where l.h = ('x' || left(encode(sha256(convert_to(s.scope, 'UTF8') || '\x00'::bytea || convert_to(coalesce(s.row_key, s.key), 'UTF8')), 'hex'), 16))::bit(64)::bigint
	  and l.scope = s.scope and l.key = coalesce(s.row_key, s.key) and l.first_seen_at = s.row_first_seen_at and l.origin_topic = s.origin_topic
) l on l.origin_partition <> s.origin_partition
where s.seen_at > clock_timestamp() - interval '7 days' and s.key is not null limit $1`

// AskSpread reads the sightings of seven days.
func AskSpread(ctx context.Context, q Beginner) (s Spread, err error) {
	tx, err := q.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return Spread{}, fmt.Errorf("beginning: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing was written
	for _, set := range deepSettings() {
		if _, err := tx.Exec(ctx, set); err != nil {
			return Spread{}, fmt.Errorf("preparing: %w", err)
		}
	}
	rows, err := tx.Query(ctx, spreadSQL, spreadMost)
	if err != nil {
		return Spread{}, fmt.Errorf("reading the sightings: %w", err)
	}
	var r Row
	var were, are int32
	_, err = pgx.ForEachRow(rows, []any{&r.Scope, &r.Key, &r.FirstSeen, &were, &are}, func() error {
		if s.Repeats++; s.Repeats == 1 {
			s.First, s.Were, s.Are = r, were, are
		}
		return nil
	})
	if err != nil {
		return Spread{}, fmt.Errorf("reading the sightings: %w", err)
	}
	return s, nil
}

// Judge is pure. Verdicts stay right; the order of such messages does not.
func (s *Spread) Judge() (fs Findings) {
	if s.Repeats == 0 {
		return fs.orOK(areaOrder, "every repeat of the last 7 days came through the partition of its first copy")
	}
	n := counted(s.Repeats, "repeat")
	if s.Repeats >= spreadMost {
		n = "at least " + n
	}
	fs.add(Warn, areaOrder, "one partitioner for all senders of a flow: librdkafka's default is CRC32 (partitioner=murmur2_random is Java's)",
		"%s of the last 7 days came through another partition than their first copy, as %s %s through %d and %d: verdicts stay right, the order of these messages does not",
		n, s.First.Scope, s.First.Key, s.Were, s.Are)
	return fs
}
