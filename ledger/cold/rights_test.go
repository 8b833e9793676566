package cold_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
	"dedupledger/migrations"
)

// forOperators are granted to the filter's role for commands that people use;
// the filter itself misses none of them.
var forOperators = map[string]bool{
	"SELECT on dedup_ledger_v": true, "SELECT on dedup_action": true, "INSERT on dedup_action": true,
}

// granted are the rights that dedup_app has by name, as `dedup migrate up` gave
// them.
func (b *bundle) granted() (rights []string) {
	b.Helper()
	rows, err := b.admin.Query(b.Context(), `
		select privilege_type || ' on ' || relname from pg_class, aclexplode(relacl)
		where grantee = 'dedup_app'::regrole and relnamespace = 'public'::regnamespace
		union all select privilege_type || ' on ' || attrelid::regclass || '.' || attname from pg_attribute, aclexplode(attacl)
		where grantee = 'dedup_app'::regrole
		union all select privilege_type || ' on ' || proname from pg_proc, aclexplode(proacl)
		where grantee = 'dedup_app'::regrole and pronamespace = 'public'::regnamespace`)
	require.NoError(b, err)
	for rows.Next() {
		var r string
		require.NoError(b, rows.Scan(&r))
		if !forOperators[r] {
			rights = append(rights, r)
		}
	}
	require.NoError(b, rows.Err())
	require.Greater(b, len(rights), 20)
	return rights
}

// sql is the statement that takes a right away, or gives it.
func (b *bundle) sql(verb, right string) string {
	b.Helper()
	privilege, object, ok := strings.Cut(right, " on ")
	require.True(b, ok)
	table, column, isColumn := strings.Cut(object, ".")
	switch {
	case privilege == "EXECUTE":
		object = "function " + b.one(`select oid::regprocedure from pg_proc where proname = '`+object+`'`)
	case isColumn:
		privilege, object = privilege+" ("+column+")", table
	}
	return fmt.Sprintf(verb, privilege, object)
}

// Without any single right that is granted the start says which one is missing:
// nothing is granted that is not looked at, and nothing looked at is not granted.
func TestLeastGrants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, right := range b.granted() {
		b.exec(b.sql("revoke %s on %s from dedup_app", right))
		_, err := cold.Open(t.Context(), cold.Config{URL: b.url("dedup_app")})
		require.ErrorIs(t, err, ledger.ErrSchema, right)
		require.ErrorContains(t, err, "PostgreSQL role dedup_app lacks "+right+": connect as dedup_app, or make that role and run `dedup migrate up` again")
		b.exec(b.sql("grant %s on %s to dedup_app", right))
	}
	_, err := cold.Open(t.Context(), cold.Config{URL: b.url("dedup_read")})
	require.ErrorContains(t, err, "PostgreSQL role dedup_read lacks INSERT on dedup_ledger, UPDATE on dedup_ledger, INSERT on dedup_sighting, UPDATE on dedup_sighting and")
	require.NoError(t, migrations.Up(t.Context(), b.url("dedup_owner"), migrations.Options{}), "harmless when repeated")
	b.open(cold.Config{})
}

// A role or database that is set read only ends the start with the statement that
// takes it back; a server may be writable again in a moment.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := "dedup_app"
	open := func() error {
		l, err := cold.Open(t.Context(), cold.Config{URL: b.url(name)})
		if err == nil {
			l.Close()
		}
		return err
	}
	for set, reset := range map[string]string{
		"alter role dedup_app in database " + b.name + " set default_transaction_read_only = on": "alter role dedup_app in database " + b.name + " reset default_transaction_read_only",
		"alter database " + b.name + " set default_transaction_read_only = on":                   "alter database " + b.name + " reset default_transaction_read_only",
	} {
		b.exec(set)
		err := open()
		require.ErrorIs(t, err, ledger.ErrSchema)
		require.ErrorContains(t, err, "PostgreSQL takes no writes, default_transaction_read_only is on: "+reset)
		b.asWriter(reset)
		require.NoError(t, open())
	}
	_, err := cold.Open(t.Context(), cold.Config{URL: b.url("dedup_app") + b.separator() + "default_transaction_read_only=on"})
	require.ErrorIs(t, err, ledger.ErrSchema)
	require.ErrorContains(t, err, "take default_transaction_read_only out of postgres.url")
}

// asWriter runs a statement in a database that is set read only.
func (b *bundle) asWriter(sql string) {
	b.Helper()
	config, err := pgxpool.ParseConfig(b.url(""))
	require.NoError(b, err)
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "off"
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	require.NoError(b, err)
	defer pool.Close()
	_, err = pool.Exec(b.Context(), sql)
	require.NoError(b, err)
}

func (b *bundle) separator() string {
	if strings.Contains(b.url(""), "?") {
		return "&"
	}
	return "?"
}

// The page names what is granted.
func TestDocumentedGrants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	page, err := os.ReadFile("../../docs/rights.md")
	require.NoError(t, err)
	tables := map[string][]string{}
	for _, right := range append(b.granted(), keys(forOperators)...) {
		privilege, object, _ := strings.Cut(right, " on ")
		if privilege != "EXECUTE" {
			table, _, _ := strings.Cut(object, ".")
			tables[table] = append(tables[table], privilege)
		}
	}
	for table, privileges := range tables {
		line := ""
		for l := range strings.Lines(string(page)) {
			if strings.HasPrefix(l, "| `dedup_app`") && strings.Contains(l, "`"+table+"`") {
				line += l
			}
		}
		for _, p := range privileges {
			require.Contains(t, line, p, table)
		}
	}
}

func keys(m map[string]bool) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}
