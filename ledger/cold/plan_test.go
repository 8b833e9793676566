package cold_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// One registration, spelled in SQL, so that it can stand in a transaction whose
// statistics are then read.
const registerOne = `select dedup_register_3(1::smallint, 100, array[$1], null, array[$1],
	array[$2::uuid], array[0], array[$3::uuid], array[0::bigint], array[0], array[0::bigint], array[0], array[1::bigint],
	array[0], array[0::bigint], array['{}'], array[0], array[0::bigint],
	array[1], array[1], array[0], array[0::bigint], array[1], array[0::bigint], null,
	array[1], array[0::bigint], array['k'], array[$4::integer], array[1],
	array[sha256('a')], null, null, null, null, null, null, null, null, null, null)`

// A look-back probes the months that the windows of its scopes reach, and no
// others: counted by what PostgreSQL did, not by what it planned.
// Fault card: F05.
func TestTheLookBackTouchesOnlyItsMonths(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 15 {
		b.exec(`select dedup_month_1(now() - make_interval(days => 30 * $1))`, i)
	}
	b.session(1, 0)
	now := time.Now().UTC()
	for _, days := range []int{1, 30, 62, 63, 400} {
		from := now.AddDate(0, 0, -days).Add(-time.Hour)
		want := b.one(`select string_agg(c, ' ' order by c) from (select inhrelid::regclass::text c from pg_inherits where inhparent = 'dedup_ledger'::regclass) x
			where c >= 'dedup_ledger_' || to_char($1::timestamptz at time zone 'UTC', 'YYYY_MM')`, from)
		require.Equal(t, want, b.probed(days), "%d days", days)
	}
}

// probed are the months in which an index was asked, in a transaction that is
// taken back.
func (b *bundle) probed(days int) string {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), b.url(""))
	require.NoError(b, err)
	defer func() { _ = conn.Close(context.WithoutCancel(b.Context())) }()
	tx, err := conn.Begin(b.Context())
	require.NoError(b, err)
	_, err = tx.Exec(b.Context(), registerOne, "t1:as2", uuid.UUID(ledger.TopicID{1}), b.one(`select claim from dedup_position`), days*86400)
	require.NoError(b, err)
	var months string
	require.NoError(b, tx.QueryRow(b.Context(), `select string_agg(relname::text, ' ' order by relname)
		from pg_stat_xact_user_tables where relname like 'dedup_ledger_%' and idx_scan > 0`).Scan(&months))
	require.NoError(b, tx.Rollback(b.Context()))
	return months
}
