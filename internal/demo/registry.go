package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"dedupledger/internal/devservices"
	"dedupledger/migrations"
)

// registry asks PostgreSQL what the filter has registered.
type registry struct{ conn *pgx.Conn }

// openRegistry does what `dedup migrate up` does, and connects.
func openRegistry(ctx context.Context, d *devservices.Database) (*registry, error) {
	if err := migrations.Up(ctx, d.OwnerURL, migrations.Options{}); err != nil {
		return nil, fmt.Errorf("migrating the ledger: %w", err)
	}
	conn, err := pgx.Connect(ctx, d.OwnerURL)
	if err != nil {
		return nil, fmt.Errorf("connecting to the ledger: %w", err)
	}
	return &registry{conn}, nil
}

func (r *registry) close(ctx context.Context) error {
	if err := r.conn.Close(ctx); err != nil {
		return fmt.Errorf("closing the connection to the ledger: %w", err)
	}
	return nil
}

// decided is how many raw records the ledger has decided.
func (r *registry) decided(ctx context.Context) (int, error) {
	var n int
	if err := r.conn.QueryRow(ctx, "select coalesce(sum(d_offset), 0) from dedup_position").Scan(&n); err != nil {
		return 0, fmt.Errorf("asking the ledger for its positions: %w", err)
	}
	return n, nil
}

// ahead counts the messages that are registered while their records lie behind
// the committed offsets, given by partition: known, and not handed on.
func (r *registry) ahead(ctx context.Context, committed []int64) (int, error) {
	var n int
	err := r.conn.QueryRow(ctx, `
		select count(*) from dedup_ledger join unnest($1::bigint[]) with ordinality as c (at, nth)
		on origin_partition = nth - 1 and origin_offset >= c.at`, committed).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("asking the ledger for its rows: %w", err)
	}
	return n, nil
}

// awaitDisconnected returns when no connection of the filter is left. A
// statement that was sent before the kill is still finished and committed.
func (r *registry) awaitDisconnected(ctx context.Context) error {
	return await(ctx, func() (bool, error) {
		var n int
		err := r.conn.QueryRow(ctx, `select count(*) from pg_stat_activity
			where datname = current_database() and usename = $1`, devservices.RoleApp).Scan(&n)
		if err != nil {
			return false, fmt.Errorf("asking PostgreSQL for the filter's connections: %w", err)
		}
		return n == 0, nil
	})
}
