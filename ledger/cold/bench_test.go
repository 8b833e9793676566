package cold_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

const benchScopes = 8

// benchChunks are chunks of 500 records over 8 scopes with one repeat in ten.
func benchChunk(s *session, from int64) *ledger.Chunk {
	records := make([]rec, ledger.MaxChunk)
	for i := range records {
		n := from + int64(i)
		key := n
		if n%10 == 9 {
			key = n - 999 // of the chunk before the last
		}
		records[i] = rec{
			offset: n, scope: fmt.Sprintf("tenant%d:edifact", (key+1e6)%benchScopes),
			key: fmt.Sprintf("edifact:4012345000009:14/4098765000010:14/%012d", key), payload: fmt.Sprint(key), window: 30 * 24 * time.Hour,
		}
	}
	return s.chunk(records...)
}

// cpu is what PostgreSQL's processes of this database have used, where it runs
// on this machine; a busy machine disturbs it less than the clock.
func (b *bundle) cpu() time.Duration {
	b.Helper()
	rows, err := b.admin.Query(b.Context(), `select pid from pg_stat_activity where datname = current_database() and usename = 'dedup_app'`)
	require.NoError(b, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(b, err)
	var ticks int64
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, f := range fields[11:13] { // utime, stime
			n, err := strconv.ParseInt(f, 10, 64)
			require.NoError(b, err)
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func report(b *testing.B, bb *bundle, before time.Duration) {
	rows := float64(ledger.MaxChunk) * float64(b.N)
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64((bb.cpu()-before).Microseconds())/rows, "server-cpu-µs/row")
}

// BenchmarkRegister is one chunk of 500 records per operation.
func BenchmarkRegister(b *testing.B) {
	bb := setup(b)
	s := bb.session(1, 0)
	before := bb.cpu()
	for b.Loop() {
		b.StopTimer()
		c := benchChunk(s, s.d.Offset)
		b.StartTimer()
		a, err := bb.l.Register(b.Context(), c)
		require.NoError(b, err)
		s.seq, s.d = a.Seqs[0], c.Advances[0].NewD
	}
	report(b, bb, before)
}

// BenchmarkBareInsert is the floor: the same rows by INSERT ... SELECT unnest
// into the same table, 500 per statement, no look-back, no verdict.
func BenchmarkBareInsert(b *testing.B) {
	bb := setup(b)
	conn, err := pgx.Connect(b.Context(), bb.url("dedup_app"))
	require.NoError(b, err)
	defer func() { _ = conn.Close(context.WithoutCancel(b.Context())) }()
	s := bb.session(1, 0)
	before := bb.cpu()
	for b.Loop() {
		b.StopTimer()
		c := benchChunk(s, s.d.Offset)
		s.d = c.Advances[0].NewD
		var h, offset []int64
		var scope, key []string
		var payload [][]byte
		for i := range c.Registrations {
			r := &c.Registrations[i]
			h, offset = append(h, r.Keys[0].Digest()), append(offset, r.Origin.Offset)
			scope, key = append(scope, r.Keys[0].Scope), append(key, r.Keys[0].Key)
			sum := sha256.Sum256(r.PayloadSHA256[:])
			payload = append(payload, sum[:])
		}
		b.StartTimer()
		_, err := conn.Exec(b.Context(), `
			insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, origin_offset, origin_partition, origin_epoch,
			                          origin_gate, origin_topic, scope, key, payload_sha256, hash_mode, source_service, flow)
			select unnest($1::bigint[]), clock_timestamp(), clock_timestamp(), clock_timestamp() + interval '30 days', unnest($2::bigint[]), 0, 0,
			       1, '01000000-0000-0000-0000-000000000000'::uuid, unnest($3::text[]), unnest($4::text[]), unnest($5::bytea[]), 'raw', 'gateway', 'edifact'`,
			h, offset, scope, key, payload)
		require.NoError(b, err)
	}
	report(b, bb, before)
}

// BenchmarkRedelivery is a chunk of 500 that comes again and again.
func BenchmarkRedelivery(b *testing.B) {
	bb := setup(b)
	s := bb.session(1, 0)
	for range 4 {
		c := benchChunk(s, s.d.Offset)
		a, err := bb.l.Register(b.Context(), c)
		require.NoError(b, err)
		s.seq, s.d = a.Seqs[0], c.Advances[0].NewD
	}
	c := benchChunk(s, s.d.Offset-ledger.MaxChunk)
	before := bb.cpu()
	for b.Loop() {
		_, err := bb.l.Register(b.Context(), c)
		require.NoError(b, err)
	}
	report(b, bb, before)
}
