package cold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"dedupledger/ledger"
)

const activeRulesSQL = `
select coalesce(fingerprint, ''), rules::text, coalesce(rules_at, 'epoch'),
       fingerprint is null and not exists (select from dedup_position) and not exists (select from dedup_scope)
from dedup_meta`

// ActiveRules are the rules that make keys now.
func (l *Ledger) ActiveRules(ctx context.Context) (ledger.Rules, error) {
	r, err := activeRules(ctx, l.pool)
	if err != nil {
		return r, l.failed(ctx, "reading the active rules", err)
	}
	return r, nil
}

// AskRules reads the active rules over a connection of Connect's.
func AskRules(ctx context.Context, conn *pgx.Conn) (ledger.Rules, error) {
	r, err := activeRules(ctx, conn)
	if err != nil {
		return r, classify("reading the active rules", err)
	}
	return r, nil
}

type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func activeRules(ctx context.Context, from asker) (r ledger.Rules, err error) {
	var text *string
	if err := from.QueryRow(ctx, activeRulesSQL).Scan(&r.Fingerprint, &text, &r.Since, &r.Empty); err != nil {
		return ledger.Rules{}, err //nolint:wrapcheck // the callers do
	}
	if r.Since = r.Since.UTC(); text != nil {
		r.Text = []byte(*text)
	}
	return r, nil
}

// Whoever comes second waits for the row's lock and finds it set. A ledger with
// positions or scopes is not empty: its keys were made by rules, though nobody
// has kept them.
const firstRulesSQL = `
update dedup_meta set fingerprint = $1, rules = $2::jsonb, rules_at = clock_timestamp()
where fingerprint is null and ($3 or not exists (select from dedup_position) and not exists (select from dedup_scope))`

// FirstRules makes rules the active ones of a ledger that has none and is empty, or
// has lost them: its keys are known to be made by these. It answers those that are
// active then.
func (l *Ledger) FirstRules(ctx context.Context, r ledger.Rules, lost bool) (ledger.Rules, error) {
	if _, err := l.pool.Exec(ctx, firstRulesSQL, r.Fingerprint, string(r.Text), lost); err != nil {
		return ledger.Rules{}, l.failed(ctx, "setting the first rules", err)
	}
	return l.ActiveRules(ctx)
}

const activateRulesSQL = `
update dedup_meta set fingerprint = $2, rules = $3::jsonb, rules_at = clock_timestamp()
where coalesce(fingerprint, '') = $1`

// ActivateRules makes rules the active ones, with its row in dedup_action, if those
// that are active are still the ones that were: else ledger.ErrRulesChanged, and
// nothing is written.
func (l *Ledger) ActivateRules(ctx context.Context, a ledger.Action, was string, r ledger.Rules) error {
	detail, err := json.Marshal(a.Detail)
	if err != nil {
		return fmt.Errorf("writing the detail of an action: %w", err)
	}
	// What is sent is not cancelled: a commit that was may have happened.
	ctx = context.WithoutCancel(ctx)
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, activateRulesSQL, was, r.Fingerprint, string(r.Text))
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		if tag.RowsAffected() != 1 {
			return ledger.ErrRulesChanged
		}
		_, err = tx.Exec(ctx, actionSQL, a.Actor, a.Kind, a.Place, a.Reason, string(detail))
		return err //nolint:wrapcheck // wrapped below
	})
	if errors.Is(err, ledger.ErrRulesChanged) {
		return err
	}
	if err != nil {
		return l.failed(ctx, "activating rules", err)
	}
	return nil
}

// The months that can hold live rows, oldest first.
const liveMonthsSQL = `
select date_trunc('month', m, 'UTC') from generate_series(
    date_trunc('month', clock_timestamp() - make_interval(secs => (select coalesce(max(max_window), 0) from dedup_scope)), 'UTC'),
    clock_timestamp(), interval '1 month') m`

const liveKeysSQL = `
select d.scope, d.flow, split_part(d.key, ':', 1), count(*) from dedup_ledger d
where d.first_seen_at >= $1 and d.first_seen_at < $1::timestamptz + interval '1 month'
  and d.closed_at is null and d.expires_at > clock_timestamp() and d.alias_of is null
group by 1, 2, 3`

// LiveKeys counts the live rows. It reads all months that can hold some, and say
// is told before each.
func (l *Ledger) LiveKeys(ctx context.Context, say func(month time.Time)) ([]ledger.LiveKeys, error) {
	counts := map[ledger.LiveKeys]int64{}
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local statement_timeout = 0; set local timezone = 'UTC'"); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		rows, err := tx.Query(ctx, liveMonthsSQL)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		months, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		for _, month := range months {
			say(month.UTC())
			rows, err := tx.Query(ctx, liveKeysSQL, month)
			if err != nil {
				return err //nolint:wrapcheck // wrapped below
			}
			var k ledger.LiveKeys
			var n int64
			if _, err := pgx.ForEachRow(rows, []any{&k.Scope, &k.Flow, &k.Scheme, &n}, func() error {
				counts[k] += n
				return nil
			}); err != nil {
				return err //nolint:wrapcheck // wrapped below
			}
		}
		return nil
	})
	if err != nil {
		return nil, classify("counting live keys", err)
	}
	all := make([]ledger.LiveKeys, 0, len(counts))
	for k, n := range counts {
		k.Count = n
		all = append(all, k)
	}
	return all, nil
}
