package cold_test

import (
	"context"
	"crypto/sha256"
	"fmt"
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

// BenchmarkRegister is one chunk of 500 records per operation.
func BenchmarkRegister(b *testing.B) {
	bb := setup(b)
	s := bb.session(1, 0)
	for b.Loop() {
		b.StopTimer()
		c := benchChunk(s, s.d.Offset)
		b.StartTimer()
		a, err := bb.l.Register(b.Context(), c)
		require.NoError(b, err)
		s.seq, s.d = a.Seqs[0], c.Advances[0].NewD
	}
	b.ReportMetric(float64(ledger.MaxChunk)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkBareInsert is the floor: the same rows by INSERT ... SELECT unnest
// into the same table, 500 per statement, no look-back, no verdict.
func BenchmarkBareInsert(b *testing.B) {
	bb := setup(b)
	conn, err := pgx.Connect(b.Context(), bb.url("dedup_app"))
	require.NoError(b, err)
	defer func() { _ = conn.Close(context.WithoutCancel(b.Context())) }()
	s := bb.session(1, 0)
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
	b.ReportMetric(float64(ledger.MaxChunk)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
