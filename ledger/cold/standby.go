package cold

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"dedupledger/ledger"
)

// Querier is a connection or a pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Standby is what PostgreSQL tells of its synchronous standbys.
type Standby struct {
	Names    string // synchronous_standby_names; "": commits wait for none
	Commit   string // synchronous_commit of this connection
	Seen     bool   // the role may see which are attached
	Attached int    // that commits wait for; 0 where it may not be seen
	Role     string
}

const standbySQL = `
select current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
	pg_has_role(current_user, 'pg_read_all_stats', 'usage'), current_user,
	(select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum') and state = 'streaming')`

// AskStandby looks for the standbys that commits wait for. Their state is shown to
// members of pg_read_all_stats only (PostgreSQL, "The Cumulative Statistics System").
func AskStandby(ctx context.Context, conn Querier) (Standby, error) {
	s, err := askStandby(ctx, conn)
	if err != nil {
		return Standby{}, classify("looking for a synchronous standby", err)
	}
	return s, nil
}

func askStandby(ctx context.Context, conn Querier) (s Standby, err error) {
	err = conn.QueryRow(ctx, standbySQL).Scan(&s.Names, &s.Commit, &s.Seen, &s.Role, &s.Attached)
	return s, err //nolint:wrapcheck // the caller says what for
}

const required = "postgres.require_sync_standby is true, "

// judge is a sentence where a commit could be lost with one server, or nil. What a
// person has to set ends a start; a standby may come back by itself.
func (s *Standby) judge() error {
	switch {
	case s.Names == "":
		return fmt.Errorf("%w: %sbut synchronous_standby_names of PostgreSQL is empty, so commits wait for no standby: name one there, or set postgres.require_sync_standby: false", ledger.ErrSchema, required)
	case s.Commit == "off" || s.Commit == "local":
		return fmt.Errorf("%w: %sbut synchronous_commit is %s for role %s, so commits wait for no standby: set it to on", ledger.ErrSchema, required, s.Commit, s.Role)
	case !s.Seen:
		return fmt.Errorf("%w: %sbut role %s may not see whether a standby is attached; as a superuser: grant pg_read_all_stats to %s", ledger.ErrSchema, required, s.Role, s.Role)
	case s.Attached == 0:
		return fmt.Errorf("%w: %sand none of synchronous_standby_names %q is attached: start it; waiting until it is", ledger.ErrUnavailable, required, s.Names)
	}
	return nil
}
