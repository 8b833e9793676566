package laws

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ReadHours reads dedup_hour.
func (o *Observation) ReadHours(ctx context.Context, db *pgx.Conn) error {
	rows, err := db.Query(ctx, `select scope, status, sum(count)::bigint, sum(bytes)::bigint from dedup_hour group by 1, 2`)
	if err != nil {
		return fmt.Errorf("reading the accounts: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var a Account
		var n Tally
		if err := rows.Scan(&a.Scope, &a.Status, &n.Count, &n.Bytes); err != nil {
			return fmt.Errorf("reading the accounts: %w", err)
		}
		o.Hours[a] = n
	}
	return rows.Err()
}

// gaps are the kinds that are no fault: what was gone before it could be read, and
// what people skipped.
const gaps = `select topic_id::text, partition, from_epoch, from_offset, to_epoch, to_offset from dedup_gap where kind <> 'no_output'`

// ReadGaps reads dedup_gap and marks the records that lie in one.
func (o *Observation) ReadGaps(ctx context.Context, db *pgx.Conn) error {
	names := map[string]string{}
	for name, id := range o.TopicIDs {
		names[id.String()] = name
	}
	rows, err := db.Query(ctx, gaps)
	if err != nil {
		return fmt.Errorf("reading the gaps: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var partition, fromEpoch, toEpoch int32
		var from, to int64
		if err := rows.Scan(&id, &partition, &fromEpoch, &from, &toEpoch, &to); err != nil {
			return fmt.Errorf("reading the gaps: %w", err)
		}
		for offset := from; offset < to; offset++ {
			p := Place{names[id], partition, offset}
			if o.Sent[p] != nil && o.Epochs[p] >= fromEpoch && o.Epochs[p] <= toEpoch {
				o.Gone[p] = true
			}
		}
	}
	return rows.Err()
}

// ReadPositions reads dedup_position.
func (o *Observation) ReadPositions(ctx context.Context, db *pgx.Conn) error {
	rows, err := db.Query(ctx, `select topic, partition, d_epoch, d_offset, w_epoch, w_offset from dedup_position`)
	if err != nil {
		return fmt.Errorf("reading the positions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var at Place
		var p Position
		if err := rows.Scan(&at.Topic, &at.Partition, &p.DEpoch, &p.D, &p.WEpoch, &p.W); err != nil {
			return fmt.Errorf("reading the positions: %w", err)
		}
		o.Positions[at] = p
	}
	return rows.Err()
}
