package cold

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"dedupledger/ledger"
)

// numbered is a repeat whose number is asked for: the how-manieth it is of its
// row's.
//
// A record's number is its own for good: what the duplicates topic carries of it
// goes by that, and a batch that comes again, in other company, must be the same.
// It is the place of its sighting among those of the row by time, and of one
// chunk, which has one time, by origin. The poll's order will not do: a chunk of
// two partitions may come again with one of them only.
type numbered struct {
	reg *ledger.Registration
	res *ledger.Result
}

// counts are the repeats that a chunk counted, by row.
type counts map[*ledger.Entry][]numbered

// add judges a repeat of a row, and keeps one that was counted in this chunk.
func (c counts) add(n numbered, row *ledger.Entry, counted bool) (kept bool) {
	verdict, _ := ledger.Judge(n.reg, row)
	n.res.Entry = *row
	if verdict == ledger.New {
		return false
	}
	if counted {
		row.RetryCount++
		if verdict == ledger.Drift {
			row.DriftCount++
		}
		n.res.Entry = *row
		c[row] = append(c[row], n)
		return true
	}
	// Counted when it came first, so it is one at least; if its sighting was not
	// kept, it was a late one, and the row's counters are no less.
	n.res.Repeat, n.res.Copy = max(row.RetryCount, 1), max(row.RetryCount-row.DriftCount, 1)
	if verdict == ledger.Drift {
		n.res.Copy = max(row.DriftCount, 1)
	}
	return false
}

// number gives the repeats of the chunk their numbers.
func (c counts) number() {
	for row, all := range c {
		slices.SortFunc(all, func(a, b numbered) int { return compareOrigins(&a.reg.Origin, &b.reg.Origin) })
		retry, drift := row.RetryCount-int64(len(all)), row.DriftCount
		for _, n := range all {
			if v, _ := ledger.Judge(n.reg, row); v == ledger.Drift {
				drift--
			}
		}
		for _, n := range all {
			retry++
			n.res.Repeat, n.res.Copy = retry, retry-drift
			if v, _ := ledger.Judge(n.reg, row); v == ledger.Drift {
				drift++
				n.res.Copy = drift
			}
		}
	}
}

// compareOrigins is PostgreSQL's order of (topic, partition, epoch, offset).
func compareOrigins(a, b *ledger.Origin) int {
	return cmp.Or(bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Offset, b.Offset))
}

// numberSQL finds the own sighting of each repeat and counts those of its row up
// to it. The lower bound keeps the look within the row's months.
const numberSQL = `
select x.i, n.repeat, n.copy
from (select generate_subscripts($1::text[], 1) i, unnest($1::text[]) scope, unnest($2::text[]) key, unnest($3::timestamptz[]) first,
             unnest($4::text[]::uuid[]) topic, unnest($5::integer[]) partition, unnest($6::integer[]) epoch, unnest($7::bigint[]) o,
             unnest($8::text[]) row_key) x,
     lateral (select s.seen_at, s.status from dedup_sighting s
              where s.scope = x.scope and s.key = x.key and coalesce(s.row_key, s.key) = x.row_key
                and s.row_first_seen_at = x.first and s.seen_at >= x.first - interval '1 hour'
                and s.origin_topic = x.topic and s.origin_partition = x.partition and s.origin_epoch = x.epoch and s.origin_offset = x.o
              limit 1) own,
     lateral (select count(*) repeat, count(*) filter (where r.status = own.status) copy
              from (select s.* from dedup_sighting s
                    where s.scope = x.scope and s.key = x.row_key and s.row_key is null
                      and s.row_first_seen_at = x.first and s.seen_at >= x.first - interval '1 hour'
                    union all
                    select s.* from dedup_sighting s -- known by an alias
                    where s.scope = x.scope and s.row_key = x.row_key
                      and s.row_first_seen_at = x.first and s.seen_at >= x.first - interval '1 hour') r
              where r.status in ('SEEN', 'DRIFT')
                and (r.seen_at, r.origin_topic, r.origin_partition, r.origin_epoch, r.origin_offset)
                    <= (own.seen_at, x.topic, x.partition, x.epoch, x.o)) n`

// number gives redelivered repeats the numbers that they had when they came
// first. One whose sighting was not kept stays with the row's counters.
func (l *Ledger) number(ctx context.Context, again []numbered) error {
	if len(again) == 0 {
		return nil
	}
	var (
		scopes, keys    []string
		rowKeys         []string
		firsts          []time.Time
		of              []string // without a statement's description the driver knows no array of uuid
		partitions, eps []int32
		offsets         []int64
	)
	for _, n := range again {
		o := &n.reg.Origin
		scopes, keys = append(scopes, n.reg.Keys[0].Scope), append(keys, n.reg.Keys[0].Key)
		rowKeys = append(rowKeys, n.res.Entry.Key)
		firsts, of = append(firsts, n.res.Entry.FirstSeenAt), append(of, uuid.UUID(o.Topic).String())
		partitions, eps, offsets = append(partitions, o.Partition), append(eps, o.Epoch), append(offsets, o.Offset)
	}
	err := l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(sent, numberSQL, scopes, keys, firsts, of, partitions, eps, offsets, rowKeys)
		if err != nil {
			return fmt.Errorf("asking: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var i int
			var repeat, kind int64
			if err := rows.Scan(&i, &repeat, &kind); err != nil {
				return fmt.Errorf("reading: %w", err)
			}
			again[i-1].res.Repeat, again[i-1].res.Copy = repeat, kind
		}
		return rows.Err()
	})
	if err != nil {
		return l.failed(ctx, "numbering redelivered repeats", err)
	}
	return nil
}
