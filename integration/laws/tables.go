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
