package cold

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dedupledger/ledger"
)

const standingsSQL = `
select p.topic_id, p.partition, p.topic, p.group_name, p.claim, p.seq, p.d_epoch, p.d_offset, p.w_epoch, p.w_offset, p.outputs::text,
       case when p.held_claim = p.claim then coalesce(p.held, '') else '' end,
       case when p.held_claim = p.claim then coalesce(p.held_why, '') else '' end,
       p.retired_at is not null, p.updated_at
from dedup_position p `

// Standings lists all positions, by topic and partition.
func (l *Ledger) Standings(ctx context.Context) ([]ledger.Standing, error) {
	return l.standings(ctx, "order by p.topic, p.topic_id, p.partition")
}

// Former lists positions of this partition's number in topics of this name that
// are gone, and not retired.
func (l *Ledger) Former(ctx context.Context, key ledger.PositionKey) ([]ledger.Standing, error) {
	return l.standings(ctx, "where p.topic = $1 and p.partition = $2 and p.topic_id <> $3 and p.retired_at is null order by p.updated_at",
		key.Topic, key.Partition.Partition, uuid.UUID(key.Partition.Topic))
}

func (l *Ledger) standings(ctx context.Context, which string, args ...any) ([]ledger.Standing, error) {
	rows, err := l.pool.Query(ctx, standingsSQL+which, args...)
	if err != nil {
		return nil, classify("listing positions", err)
	}
	all, err := pgx.CollectRows(rows, standingOf)
	if err != nil {
		return nil, classify("listing positions", err)
	}
	return all, nil
}

func standingOf(r pgx.CollectableRow) (s ledger.Standing, err error) {
	var topic, claim uuid.UUID
	var outputs string
	err = r.Scan(&topic, &s.Partition.Partition, &s.Topic, &s.Group, &claim, &s.Seq, &s.D.Epoch, &s.D.Offset,
		&s.W.Epoch, &s.W.Offset, &outputs, &s.Held, &s.HeldWhy, &s.Retired, &s.UpdatedAt)
	if err != nil {
		return s, fmt.Errorf("reading a position: %w", err)
	}
	s.Partition.Topic, s.Claim = ledger.TopicID(topic), ledger.Claim(claim)
	if err := json.Unmarshal([]byte(outputs), &s.Outputs); err != nil {
		return s, fmt.Errorf("reading where the outputs of %s end: %w", s.Partition, err)
	}
	return s, nil
}

const changeSQL = `
update dedup_position p
set claim = gen_random_uuid(), timeline = dedup_timeline_1(), seq = p.seq + 1, updated_at = clock_timestamp(),
    held = null, held_why = null, held_claim = null,
    w_epoch = case when (p.w_epoch, p.w_offset) < ($5, $6) then $5 else p.w_epoch end,
    w_offset = case when (p.w_epoch, p.w_offset) < ($5, $6) then $6 else p.w_offset end,
    d_epoch = case when (p.d_epoch, p.d_offset) < ($5, $6) then $5 else p.d_epoch end,
    d_offset = case when (p.d_epoch, p.d_offset) < ($5, $6) then $6 else p.d_offset end,
    outputs = coalesce($7::jsonb, p.outputs),
    group_name = coalesce($8, p.group_name),
    retired_at = case when $9 then coalesce(p.retired_at, clock_timestamp()) else p.retired_at end
where p.topic_id = $1 and p.partition = $2 and p.claim = $3 and (not $4 or p.held is not null and p.held_claim = p.claim)`

const settledGapSQL = `
insert into dedup_gap (found_at, topic_id, partition, from_epoch, from_offset, to_epoch, to_offset, kind, note)
values (clock_timestamp(), $1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`

const actionSQL = `insert into dedup_action (actor, kind, place, reason, detail) values ($1, $2, $3, $4, $5::jsonb)`

// Settle does what a person decided, with its row in dedup_action, in one
// transaction. A partition that somebody took since it was looked at is
// ledger.ErrClaimLost, and nothing is written then.
func (l *Ledger) Settle(ctx context.Context, a ledger.Action, changes []ledger.Change) error {
	detail, err := json.Marshal(a.Detail)
	if err != nil {
		return fmt.Errorf("writing the detail of an action: %w", err)
	}
	// What is sent is not cancelled: a commit that was may have happened.
	ctx = context.WithoutCancel(ctx)
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		for i := range changes {
			if err := change(ctx, tx, &changes[i]); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, actionSQL, a.Actor, a.Kind, a.Place, a.Reason, string(detail))
		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return classify("settling positions", err)
	}
	return nil
}

func change(ctx context.Context, tx pgx.Tx, c *ledger.Change) error {
	to := ledger.Position{}
	if c.To != nil {
		to = *c.To
	}
	var outputs *string
	if c.Outputs != nil {
		text, err := outputsText(c.Outputs)
		if err != nil {
			return err
		}
		outputs = &text
	}
	tag, err := tx.Exec(ctx, changeSQL, uuid.UUID(c.Partition.Topic), c.Partition.Partition, uuid.UUID(c.Claim), c.Held,
		to.Epoch, to.Offset, outputs, orNull(c.Group), c.Retire)
	switch {
	case err != nil:
		return fmt.Errorf("changing the position of %s: %w", c.Partition, err)
	case tag.RowsAffected() != 1:
		return fmt.Errorf("changing the position of %s: %w", c.Partition, ledger.ErrClaimLost)
	case c.Gap == nil:
		return nil
	}
	g := c.Gap
	_, err = tx.Exec(ctx, settledGapSQL, uuid.UUID(g.Partition.Topic), g.Partition.Partition,
		g.From.Epoch, g.From.Offset, g.To.Epoch, g.To.Offset, string(g.Kind), orNull(g.Note))
	if err != nil {
		return fmt.Errorf("recording the gap of %s: %w", c.Partition, err)
	}
	return nil
}

// The whole ledger is read: there is no index by origin, and this is asked once
// per gap in which something was decided.
const orphansSQL = `
select d.scope, d.key, d.origin_epoch, d.origin_offset, d.first_seen_at,
       coalesce((select array_agg(s.origin_topic || '/' || s.origin_partition || '/' || s.origin_epoch || '/' || s.origin_offset order by s.seen_at)
                 from dedup_sighting s
                 where s.scope = d.scope and (s.key = d.key and s.row_key is null or s.row_key = d.key)
                   and s.row_first_seen_at = d.first_seen_at and s.status in ('SEEN', 'DRIFT')
                   and not (s.origin_topic = $1 and s.origin_partition = $2 and (s.origin_epoch, s.origin_offset) >= ($3, $4)
                            and (s.origin_epoch, s.origin_offset) < ($5, $6))), '{}')
from dedup_ledger d
where d.origin_topic = $1 and d.origin_partition = $2
  and (d.origin_epoch, d.origin_offset) >= ($3, $4) and (d.origin_epoch, d.origin_offset) < ($5, $6)
  and d.closed_at is null and d.expires_at > clock_timestamp() and d.alias_of is null
order by d.origin_epoch, d.origin_offset`

// Orphans lists the live rows, of primary keys, whose records lie in a range. It reads all of the
// ledger.
func (l *Ledger) Orphans(ctx context.Context, of ledger.Partition, in ledger.Range) (all []ledger.Orphan, err error) {
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		rows, err := tx.Query(ctx, orphansSQL, uuid.UUID(of.Topic), of.Partition, in.From.Epoch, in.From.Offset, in.To.Epoch, in.To.Offset)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (o ledger.Orphan, err error) {
			o.Origin = ledger.Origin{Gate: ledger.GateKafka, Topic: of.Topic, Partition: of.Partition}
			var copies []string
			if err := r.Scan(&o.Scope, &o.Key, &o.Origin.Epoch, &o.Origin.Offset, &o.FirstSeenAt, &copies); err != nil {
				return o, fmt.Errorf("reading a row: %w", err)
			}
			o.Copies, err = originsOf(copies)
			return o, err
		})
		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return nil, classify("looking for rows of a gap", err)
	}
	return all, nil
}

func originsOf(texts []string) ([]ledger.Origin, error) {
	var all []ledger.Origin
	for _, text := range texts {
		o := ledger.Origin{Gate: ledger.GateKafka}
		var topic string
		if _, err := fmt.Sscanf(text, "%36s/%d/%d/%d", &topic, &o.Partition, &o.Epoch, &o.Offset); err != nil {
			return nil, fmt.Errorf("reading the place of a copy: %w", err)
		}
		id, err := uuid.Parse(topic)
		if err != nil {
			return nil, fmt.Errorf("reading the place of a copy: %w", err)
		}
		o.Topic = ledger.TopicID(id)
		all = append(all, o)
	}
	return all, nil
}
