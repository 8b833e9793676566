package cold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dedupledger/ledger"
)

// The claim is written where the group is the row's owner; in the same snapshot
// the owner is read where it is another.
const claimSQL = `
with mine as (
    update dedup_position p set claim = $3, timeline = dedup_timeline_1(), topic = $4, updated_at = clock_timestamp()
    where p.topic_id = $1 and p.partition = $2 and p.group_name = $5
    returning p.group_name, p.seq, p.d_epoch, p.d_offset, p.w_epoch, p.w_offset, p.outputs::text)
select * from mine
union all
select p.group_name, p.seq, p.d_epoch, p.d_offset, p.w_epoch, p.w_offset, p.outputs::text
from dedup_position p
where p.topic_id = $1 and p.partition = $2 and p.group_name <> $5`

// Claim makes the asking session the one that works on a partition: from here
// on every write of an earlier session is refused. found is false where the
// partition has no position yet. A partition of another consumer group is an
// *ledger.OtherGroupError and keeps its claim.
func (l *Ledger) Claim(ctx context.Context, key ledger.PositionKey, claim ledger.Claim) (position ledger.PositionRow, found bool, err error) {
	var outputs string
	err = l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(sent, claimSQL,
			uuid.UUID(key.Partition.Topic), key.Partition.Partition, uuid.UUID(claim), key.Topic, key.Group).
			Scan(&position.Group, &position.Seq, &position.D.Epoch, &position.D.Offset,
				&position.W.Epoch, &position.W.Offset, &outputs)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.PositionRow{}, false, nil
	}
	if err != nil {
		return ledger.PositionRow{}, false, l.failed(ctx, fmt.Sprintf("claiming partition %s", key.Partition), err)
	}
	if position.Group != key.Group {
		return ledger.PositionRow{}, false, &ledger.OtherGroupError{Partition: key.Partition, Owner: position.Group}
	}
	if err := json.Unmarshal([]byte(outputs), &position.Outputs); err != nil {
		return ledger.PositionRow{}, false, fmt.Errorf("reading where the outputs of %s end: %w", key.Partition, err)
	}
	return position, true, nil
}

const openSQL = `
insert into dedup_position (topic_id, partition, topic, group_name, claim, timeline, seq,
                            d_epoch, d_offset, w_epoch, w_offset, outputs, updated_at)
values ($1, $2, $3, $4, $5, dedup_timeline_1(), 0, $6, $7, $6, $7, $8::jsonb, clock_timestamp())
on conflict do nothing`

// OpenPosition makes the row of a partition that has none, before its first
// poll: W = D = start. created is false where somebody made it meanwhile; Claim
// then tells whose it is.
func (l *Ledger) OpenPosition(ctx context.Context, key ledger.PositionKey, claim ledger.Claim, start ledger.Position, out ledger.Outputs) (created bool, err error) {
	outputs, err := outputsText(out)
	if err != nil {
		return false, err
	}
	err = l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		tag, err := conn.Exec(sent, openSQL,
			uuid.UUID(key.Partition.Topic), key.Partition.Partition, key.Topic, key.Group, uuid.UUID(claim),
			start.Epoch, start.Offset, outputs)
		created = tag.RowsAffected() == 1
		return err
	})
	if err != nil {
		return false, l.failed(ctx, fmt.Sprintf("opening the position of partition %s", key.Partition), err)
	}
	return created, nil
}

// Each row for itself: one that another session has taken keeps no other from
// being written. W never falls. It takes D with it over control records, which
// are never registered.
const flushSQL = `
update dedup_position p
set w_epoch = case when (p.w_epoch, p.w_offset) < ($4, $5) then $4 else p.w_epoch end,
    w_offset = case when (p.w_epoch, p.w_offset) < ($4, $5) then $5 else p.w_offset end,
    d_epoch = case when (p.d_epoch, p.d_offset) < ($4, $5) then $4 else p.d_epoch end,
    d_offset = case when (p.d_epoch, p.d_offset) < ($4, $5) then $5 else p.d_offset end,
    outputs = case when (p.w_epoch, p.w_offset) <= ($4, $5) then $6::jsonb else p.outputs end,
    updated_at = clock_timestamp()
where p.topic_id = $1 and p.partition = $2 and p.claim = $3 and p.timeline = dedup_timeline_1()
  and p.seq >= $7 and (p.d_epoch, p.d_offset) >= ($8, $9)`

// Flush writes W and Outputs of each advance, without a chunk. Those whose
// claim, timeline, seq or D is not the row's any more are left out, and
// reported together as ledger.ErrClaimLost.
func (l *Ledger) Flush(ctx context.Context, advances []ledger.Advance) error {
	var refused []error
	err := l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		for i := range advances {
			applied, err := flush(sent, conn, &advances[i])
			if err != nil {
				return err
			}
			if !applied {
				refused = append(refused, fmt.Errorf("writing W of partition %s: %w", advances[i].Partition, ledger.ErrClaimLost))
			}
		}
		return nil
	})
	if err != nil {
		refused = append(refused, l.failed(ctx, "writing W", err))
	}
	return errors.Join(refused...)
}

func flush(ctx context.Context, conn *pgxpool.Conn, a *ledger.Advance) (applied bool, err error) {
	outputs, err := outputsText(a.Outputs)
	if err != nil {
		return false, err
	}
	tag, err := conn.Exec(ctx, flushSQL, uuid.UUID(a.Partition.Topic), a.Partition.Partition, uuid.UUID(a.Claim),
		a.W.Epoch, a.W.Offset, outputs, a.Seq, a.D.Epoch, a.D.Offset)
	return tag.RowsAffected() > 0, err
}
