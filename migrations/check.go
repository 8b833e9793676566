package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// VersionError says that the schema is not the one this program works with.
type VersionError struct {
	Have, Want int64 // Have 0: no schema
	RunsFrom   int64 // the oldest program's that the schema is good for, where it is newer
}

func (e *VersionError) Error() string {
	switch {
	case e.Have == 0:
		return "the database holds no ledger yet: run `dedup migrate up` as the schema's owner"
	case e.Have < e.Want:
		return fmt.Sprintf("the schema is version %d, this program needs %d: run `dedup migrate up` as the schema's owner", e.Have, e.Want)
	default:
		return fmt.Sprintf("the schema is version %d and good for programs of %d and later, this program knows only %d, "+
			"more than one release behind: install the newer program (`dedup version` tells which one this is)", e.Have, e.RunsFrom, e.Want)
	}
}

// Querier is what Check asks; a connection, a pool and a transaction of pgx are.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// undefinedTable is SQLSTATE 42P01.
const undefinedTable = "42P01"

// Check compares the schema with this program. A difference is a *VersionError,
// whose text names the command that mends it; a schema of the next release is
// none, so that programs can be replaced one by one after a migration.
func Check(ctx context.Context, conn Querier) error {
	have, err := current(ctx, conn)
	if err != nil {
		return err
	}
	want := Version()
	if have == want {
		return nil
	}
	wrong := &VersionError{Have: have, Want: want}
	if have < want {
		return wrong
	}
	if err := conn.QueryRow(ctx, "select runs_from from public.dedup_meta").Scan(&wrong.RunsFrom); err != nil {
		return fmt.Errorf("reading which programs the schema is good for: %w", err)
	}
	if want >= wrong.RunsFrom {
		return nil
	}
	return wrong
}

// current is the newest applied version, 0 where there is no schema.
func current(ctx context.Context, conn Querier) (int64, error) {
	var have int64
	err := conn.QueryRow(ctx, "select coalesce(max(version_id), 0) from public."+table+" where is_applied").Scan(&have)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == undefinedTable {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the schema's version: %w", err)
	}
	return have, nil
}
