package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"dedupledger/integration/laws"
)

// shownKeys of those that a law was broken for: their whole stories.
const shownKeys = 4

// evidence tells the stories of keys that laws were broken for: each raw record
// with its output, each row and each sighting. What broke is seldom to be had a
// second time.
func (c *campaign) evidence(ctx context.Context, o *laws.Observation, faults []error) {
	keys := blamed(o, faults)
	if len(keys) == 0 {
		return
	}
	db, err := c.s.asAdmin(ctx)
	if err != nil {
		fmt.Fprintf(c.out, "no evidence: %v\n", err)
		return
	}
	defer db.Close(context.WithoutCancel(ctx))
	for _, k := range keys[:min(shownKeys, len(keys))] {
		fmt.Fprintf(c.out, "the story of %s %s\n", k.scope, k.key)
		tellRecords(c.out, o, k)
		if err := tellRows(ctx, c.out, db, k); err != nil {
			fmt.Fprintf(c.out, "no rows: %v\n", err)
		}
	}
}

// storyKey is a key in its ledger scope.
type storyKey struct{ scope, key string }

// blamed are the keys of the records that faults name, in the faults' order.
func blamed(o *laws.Observation, faults []error) (keys []storyKey) {
	for _, err := range faults {
		fault, ok := errors.AsType[*laws.Fault](err)
		if !ok || o.Sent[fault.Of] == nil {
			continue
		}
		s := o.Sent[fault.Of]
		if k := (storyKey{s.LedgerScope(), s.Want.Key}); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func tellRecords(out io.Writer, o *laws.Observation, k storyKey) {
	outputs := map[laws.Place][]*laws.Output{}
	for _, one := range o.Outputs {
		outputs[one.Origin] = append(outputs[one.Origin], one)
	}
	var all []*laws.Sent
	for _, s := range o.Sent {
		if s.LedgerScope() == k.scope && s.Want.Key == k.key {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *laws.Sent) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Place.String(), b.Place.String()))
	})
	for _, s := range all {
		fmt.Fprintf(out, "  %s raw %s epoch %d gone %v", s.At.UTC().Format("15:04:05.000"), s.Place, o.Epochs[s.Place], o.Gone[s.Place])
		for _, one := range outputs[s.Place] {
			fmt.Fprintf(out, " → %s %s, first %s of %s", one, one.Status(), laws.Header(one.Record, "dedup-first-origin"), laws.Header(one.Record, "dedup-first-seen-at"))
		}
		fmt.Fprintln(out)
	}
}

func tellRows(ctx context.Context, out io.Writer, db *pgx.Conn, k storyKey) error {
	for _, q := range []string{
		`select to_char(first_seen_at at time zone 'UTC', 'HH24:MI:SS.MS') || ' row of ' || origin_topic || '/' || origin_partition || '/' || origin_offset
			|| ' epoch ' || origin_epoch || ' retry ' || retry_count || coalesce(' closed ' || to_char(closed_at at time zone 'UTC', 'HH24:MI:SS.MS') || ' by ' || closed_by, '')
		from dedup_ledger where scope = $1 and key = $2 order by first_seen_at`,
		`select to_char(seen_at at time zone 'UTC', 'HH24:MI:SS.MS') || ' sighting of ' || origin_topic || '/' || origin_partition || '/' || origin_offset
			|| ' epoch ' || origin_epoch || ' ' || status || ' of ' || to_char(row_first_seen_at at time zone 'UTC', 'HH24:MI:SS.MS')
		from dedup_sighting where scope = $1 and key = $2 order by seen_at`,
	} {
		rows, err := db.Query(ctx, q, k.scope, k.key)
		if err != nil {
			return fmt.Errorf("asking for the rows of %s %s: %w", k.scope, k.key, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("reading the rows of %s %s: %w", k.scope, k.key, err)
		}
		for _, line := range lines {
			fmt.Fprintln(out, "  "+line)
		}
	}
	return nil
}
