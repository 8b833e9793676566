package cold

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dedupledger/ledger"
)

// A gap that the log start has made takes W and D behind it, in the same
// statement. Otherwise a session that dies here would find the log start further
// on, and record the first part twice.
const gapSQL = `
with p as (
    update dedup_position p
    set w_epoch = case when $8 = 'log_start' and (p.w_epoch, p.w_offset) < ($6, $7) then $6 else p.w_epoch end,
        w_offset = case when $8 = 'log_start' and (p.w_epoch, p.w_offset) < ($6, $7) then $7 else p.w_offset end,
        d_epoch = case when $8 = 'log_start' and (p.d_epoch, p.d_offset) < ($6, $7) then $6 else p.d_epoch end,
        d_offset = case when $8 = 'log_start' and (p.d_epoch, p.d_offset) < ($6, $7) then $7 else p.d_offset end,
        updated_at = clock_timestamp()
    where p.topic_id = $1 and p.partition = $2 and p.claim = $3 and p.timeline = dedup_timeline_1()
      and p.seq >= $10 and (p.d_epoch, p.d_offset) >= ($11, $12)
    returning p.topic_id, p.partition),
g as (
    insert into dedup_gap (found_at, topic_id, partition, from_epoch, from_offset, to_epoch, to_offset, kind, note)
    select clock_timestamp(), p.topic_id, p.partition, $4, $5, $6, $7, $8, $9 from p
    on conflict do nothing
    returning 1)
select (select count(*) from p), (select count(*) from g)`

// RecordGap writes a gap down, for the session that works on the partition and
// knows of it what a says. fresh is false where the gap is known already. A gap
// of the log start takes W and D behind it.
func (l *Ledger) RecordGap(ctx context.Context, a *ledger.Advance, g *ledger.Gap) (fresh bool, err error) {
	var positions, made int
	err = l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(sent, gapSQL, uuid.UUID(g.Partition.Topic), g.Partition.Partition, uuid.UUID(a.Claim),
			g.From.Epoch, g.From.Offset, g.To.Epoch, g.To.Offset, string(g.Kind), orNull(g.Note),
			a.Seq, a.D.Epoch, a.D.Offset).Scan(&positions, &made)
	})
	switch {
	case err != nil:
		return false, l.failed(ctx, fmt.Sprintf("recording a gap of partition %s", g.Partition), err)
	case positions == 0:
		return false, fmt.Errorf("recording a gap of partition %s: %w", g.Partition, ledger.ErrClaimLost)
	}
	return made == 1, nil
}

// A gap that somebody has made by a command is known to a person.
const openGapsSQL = `
select p.topic, coalesce(sum(greatest(g.to_offset - g.from_offset, 0)) filter (
    where g.acknowledged_at is null and g.kind not in ('skip', 'retired')), 0)::bigint
from dedup_gap g join dedup_position p using (topic_id, partition) group by p.topic`

// OpenGaps are the offsets in gaps that nobody has acknowledged, by raw topic. A
// topic with gaps of which all are acknowledged has 0.
func (l *Ledger) OpenGaps(ctx context.Context) (map[string]int64, error) {
	open := map[string]int64{}
	rows, err := l.pool.Query(ctx, openGapsSQL)
	if err != nil {
		return nil, classify("counting the gaps", err)
	}
	var topic string
	var offsets int64
	if _, err := pgx.ForEachRow(rows, []any{&topic, &offsets}, func() error {
		open[topic] = offsets
		return nil
	}); err != nil {
		return nil, classify("counting the gaps", err)
	}
	return open, nil
}

const holdSQL = `
update dedup_position p set held = $4, held_why = $5, held_claim = p.claim, updated_at = clock_timestamp()
where p.topic_id = $1 and p.partition = $2 and p.claim = $3 and p.timeline = dedup_timeline_1()`

// Hold tells the row that the session does not consume the partition, and why:
// a command may then change its position. It counts as long as the claim does;
// kept is false where that is another by now.
func (l *Ledger) Hold(ctx context.Context, of ledger.Partition, claim ledger.Claim, reason, why string) (kept bool, err error) {
	err = l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		tag, err := conn.Exec(sent, holdSQL, uuid.UUID(of.Topic), of.Partition, uuid.UUID(claim), reason, why)
		kept = tag.RowsAffected() > 0
		return err
	})
	if err != nil {
		return false, l.failed(ctx, fmt.Sprintf("telling why partition %s is held", of), err)
	}
	return kept, nil
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
