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
const gaps = `select topic_id::text, partition, from_epoch, from_offset, to_epoch, to_offset, kind = 'retired' from dedup_gap where kind <> 'no_output'`

// ReadGaps reads dedup_gap and marks the records that lie in one. Positions are
// compared epoch first, as in the table.
func (o *Observation) ReadGaps(ctx context.Context, db *pgx.Conn) error {
	rows, err := db.Query(ctx, gaps)
	if err != nil {
		return fmt.Errorf("reading the gaps: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var g gap
		if err := rows.Scan(&g.topic, &g.partition, &g.fromEpoch, &g.from, &g.toEpoch, &g.to, &g.retired); err != nil {
			return fmt.Errorf("reading the gaps: %w", err)
		}
		o.mark(g)
	}
	return rows.Err()
}

// gap is a line of dedup_gap.
type gap struct {
	topic              string // id
	partition          int32
	fromEpoch, toEpoch int32
	from, to           int64
	retired            bool
}

// mark marks what lies in the gap. The gap of a topic that was made again under its
// name begins behind the last record that was accepted: repeats behind that may
// have their outputs (internal/settle).
func (o *Observation) mark(g gap) {
	repeats := map[Place]bool{}
	for _, out := range o.Outputs {
		repeats[out.Origin] = g.retired && out.Kind != Clean
	}
	for p := range o.Sent {
		if repeats[p] || p.Partition != g.partition || o.TopicIDs[p.Topic].String() != g.topic {
			continue
		}
		epoch := o.Epochs[p]
		begun := epoch > g.fromEpoch || epoch == g.fromEpoch && p.Offset >= g.from
		over := epoch > g.toEpoch || epoch == g.toEpoch && p.Offset >= g.to
		if begun && !over {
			o.Gone[p] = true
		}
	}
}

// ReadPositions reads dedup_position. Topics go by their ids, where they are known.
func (o *Observation) ReadPositions(ctx context.Context, db *pgx.Conn) error {
	names := map[string][]string{}
	for name, id := range o.TopicIDs {
		names[id.String()] = append(names[id.String()], name)
	}
	rows, err := db.Query(ctx, `select topic, topic_id::text, partition, d_epoch, d_offset, w_epoch, w_offset from dedup_position`)
	if err != nil {
		return fmt.Errorf("reading the positions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var topic, id string
		var partition int32
		var p Position
		if err := rows.Scan(&topic, &id, &partition, &p.DEpoch, &p.D, &p.WEpoch, &p.W); err != nil {
			return fmt.Errorf("reading the positions: %w", err)
		}
		known := names[id]
		if len(names) == 0 {
			known = []string{topic}
		}
		for _, name := range known {
			o.Positions[Place{Topic: name, Partition: partition}] = p
		}
	}
	return rows.Err()
}
