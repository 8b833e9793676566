package cold

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dedupledger/ledger"
)

// needs are the rights of the filter's role, as `dedup migrate up` grants them
// (migrations/after.sql): privilege and table, or a column after a dot. A test
// holds both lists together. Functions come from the schema itself.
func needs() (privileges, objects []string) {
	for _, n := range []struct{ privileges, object string }{
		{"select", "dedup_migration"},
		{"select insert update", "dedup_ledger"},
		{"select insert update delete", "dedup_sighting"},
		{"select insert update", "dedup_hour"},
		{"select insert update", "dedup_scope"},
		{"select insert update", "dedup_position"},
		{"select insert", "dedup_gap"},
		{"select", "dedup_meta"},
		{"update", "dedup_meta.fingerprint"},
		{"update", "dedup_meta.rules"},
		{"update", "dedup_meta.rules_at"},
		{"update", "dedup_meta.witness_kafka"},
		{"update", "dedup_meta.witness_api"},
		{"update", "dedup_meta.witness_last_at"},
		{"update", "dedup_meta.witness_last"},
	} {
		for p := range strings.FieldsSeq(n.privileges) {
			privileges, objects = append(privileges, p), append(objects, n.object)
		}
	}
	return privileges, objects
}

const askRights = `
with missing as (
	select 1 as class, ord, upper(p) || ' on ' || o as what
	from unnest($1::text[], $2::text[]) with ordinality as n(p, o, ord)
	where not case when position('.' in o) > 0
		then has_column_privilege('public.' || split_part(o, '.', 1), split_part(o, '.', 2), p)
		else has_table_privilege('public.' || o, p) end
	union all
	select 2, row_number() over (order by p.proname), 'EXECUTE on ' || p.proname
	from pg_proc p
	where p.pronamespace = 'public'::regnamespace and p.proname ~ '^dedup_[a-z_]+_[0-9]+$' and not has_function_privilege(p.oid, 'execute')
)
select current_user, current_database(), coalesce((select array_agg(what order by class, ord) from missing), '{}'),
	pg_is_in_recovery(), current_setting('default_transaction_read_only')::boolean,
	(select source from pg_settings where name = 'default_transaction_read_only')`

// standing is what the role may do, and whether the server takes writes of it.
type standing struct {
	role, database string
	missing        []string
	standby        bool
	readOnly       bool
	source         string // of that setting, as pg_settings tells it
}

// checkRights says in one sentence why the ledger could not be written, or nil.
func (l *Ledger) checkRights(ctx context.Context) error {
	s, err := l.standing(ctx)
	if err != nil {
		return atStart("checking our rights", err)
	}
	return s.judge()
}

func (l *Ledger) standing(ctx context.Context) (s standing, err error) {
	privileges, objects := needs()
	err = l.pool.QueryRow(ctx, askRights, privileges, objects).Scan(&s.role, &s.database, &s.missing, &s.standby, &s.readOnly, &s.source)
	return s, err //nolint:wrapcheck // the callers say what for
}

// Denied is a ledger.ErrDenied that names the rights which the running filter
// misses, with the repair, or nil if it has all.
func (l *Ledger) Denied(ctx context.Context) error {
	s, err := l.standing(ctx)
	if err != nil {
		return classify("checking our rights", err)
	}
	if len(s.missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: PostgreSQL role %s lacks %s: run `dedup migrate up` as the schema's owner, which grants all that it needs, or grant this again", ledger.ErrDenied, s.role, s.shown())
}

// failed is classify of a running filter: a right that was taken away is named.
// The server's own words name a table, and not the privilege.
func (l *Ledger) failed(ctx context.Context, attempt string, err error) error {
	classified := classify(attempt, err)
	if !errors.Is(classified, ledger.ErrDenied) {
		return classified
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.config.StatementTimeout)
	defer cancel()
	if named := l.Denied(ctx); errors.Is(named, ledger.ErrDenied) {
		return fmt.Errorf("%s: %w: %w", attempt, named, err)
	}
	return classified
}

const shownRights = 4

// shown is what is missing, in a line.
func (s *standing) shown() string {
	shown := strings.Join(s.missing[:min(len(s.missing), shownRights)], ", ")
	if more := len(s.missing) - shownRights; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return shown
}

func (s *standing) judge() error {
	switch {
	case len(s.missing) > 0:
		return fmt.Errorf("%w: PostgreSQL role %s lacks %s: connect as dedup_app, or make that role and run `dedup migrate up` again, as the schema's owner", ledger.ErrSchema, s.role, s.shown())
	case s.standby:
		return fmt.Errorf("%w: PostgreSQL is a standby and takes no writes: name the primary in postgres.url, or all servers with target_session_attrs=read-write; waiting until it is promoted", ledger.ErrUnavailable)
	case s.readOnly:
		return s.judgeReadOnly()
	}
	return nil
}

// judgeReadOnly tells a setting that somebody made for this role or database,
// and that stays, from one of the server, which whoever keeps it takes back.
func (s *standing) judgeReadOnly() error {
	repair, kind := "", ledger.ErrSchema
	switch s.source {
	case "user":
		repair = fmt.Sprintf("alter role %s reset default_transaction_read_only", s.role)
	case "database":
		repair = fmt.Sprintf("alter database %s reset default_transaction_read_only", s.database)
	case "database user":
		repair = fmt.Sprintf("alter role %s in database %s reset default_transaction_read_only", s.role, s.database)
	case "client":
		repair = "take default_transaction_read_only out of postgres.url"
	default:
		repair, kind = fmt.Sprintf("the server's own setting (%s); waiting until it is off", s.source), ledger.ErrUnavailable
	}
	return fmt.Errorf("%w: PostgreSQL takes no writes, default_transaction_read_only is on: %s", kind, repair)
}
