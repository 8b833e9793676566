package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dedupledger/internal/rules"
	"dedupledger/ledger"
)

// insertSQL writes the rows that the registration of the same chunk leaves in
// the two tables that grow, and nothing else: no look-back, no lock, no
// position, no accounts. $5 says which lines are resends.
const insertSQL = `
with lines as materialized (
    select unnest($1::bigint[]) h, unnest($2::bigint[]) o, unnest($3::text[]) scope, unnest($4::text[]) key,
           unnest($5::boolean[]) again, unnest($6::bytea[]) payload, unnest($7::integer[]) partition),
sightings as (
    insert into dedup_sighting (seen_at, row_first_seen_at, origin_offset, origin_partition, origin_epoch, origin_gate,
                                origin_topic, scope, key, status, payload_sha256, flow)
    select now(), now(), o, partition, 0, 1, $8::uuid, scope, key, 'SEEN', payload, 'edifact' from lines where again)
insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, origin_offset, origin_partition, origin_epoch,
                          origin_gate, origin_topic, scope, key, payload_sha256, hash_mode, flow)
select h, now(), now(), now() + interval '60 days', o, partition, 0, 1, $8::uuid, scope, key, payload, 'raw', 'edifact'
from lines where not again`

// insert writes the rows on one connection, 500 lines per statement,
// autocommit. Parameters are encoded while the clock stands.
func (s *stage) insert(ctx context.Context, n int) (figures, error) {
	db, err := s.database(ctx, fmt.Sprintf("insert_%d", n))
	if err != nil {
		return figures{}, err
	}
	defer s.drop(ctx, db)
	keyer, err := newKeyer()
	if err != nil {
		return figures{}, err
	}
	var took time.Duration
	err = onDatabase(ctx, db.AppURL, func(c *pgx.Conn) error {
		if _, err := c.Prepare(ctx, "insert", insertSQL); err != nil {
			return fmt.Errorf("preparing the insert: %w", err)
		}
		for from := int64(0); from < s.o.messages; from += window {
			statements, err := s.statements(c.TypeMap(), from, min(from+window, s.o.messages), keyer)
			if err != nil {
				return err
			}
			began := time.Now()
			for _, values := range statements {
				binary := []int16{pgtype.BinaryFormatCode}
				if r := c.PgConn().ExecPrepared(ctx, "insert", values, binary, binary).Read(); r.Err != nil {
					return fmt.Errorf("inserting: %w", r.Err)
				}
			}
			took += time.Since(began)
		}
		return nil
	})
	if err != nil {
		return figures{}, err
	}
	return timed(s.o.messages, took), nil
}

// statements are the parameters of the stretch's inserts.
func (s *stage) statements(types *pgtype.Map, from, to int64, keyer rules.Keyer) (all [][][]byte, err error) {
	for at := from; at < to; at += ledger.MaxChunk {
		var l lines
		for n := at; n < min(at+ledger.MaxChunk, to); n++ {
			index, offset := placed(n)
			f := &s.flows[index]
			r := registration(f, n, offset, keyer)
			if len(r.Keys) != 1 {
				return nil, fmt.Errorf("message %d has no key: %s", n, r.Reason)
			}
			l.add(&r, original(n) != n)
		}
		values, err := l.encode(types)
		if err != nil {
			return nil, err
		}
		all = append(all, values)
	}
	return all, nil
}

// lines are the parallel arrays of one statement.
type lines struct {
	h, offset  []int64
	scope, key []string
	again      []bool
	payload    [][]byte
	partition  []int32
}

func (l *lines) add(r *ledger.Registration, again bool) {
	l.h, l.offset = append(l.h, r.Keys[0].Digest()), append(l.offset, r.Origin.Offset)
	l.scope, l.key = append(l.scope, r.Keys[0].Scope), append(l.key, r.Keys[0].Key)
	l.again, l.payload = append(l.again, again), append(l.payload, r.PayloadSHA256[:])
	l.partition = append(l.partition, r.Origin.Partition)
}

func (l *lines) encode(types *pgtype.Map) (values [][]byte, err error) {
	for _, p := range []struct {
		oid   uint32
		value any
	}{
		{pgtype.Int8ArrayOID, l.h},
		{pgtype.Int8ArrayOID, l.offset},
		{pgtype.TextArrayOID, l.scope},
		{pgtype.TextArrayOID, l.key},
		{pgtype.BoolArrayOID, l.again},
		{pgtype.ByteaArrayOID, l.payload},
		{pgtype.Int4ArrayOID, l.partition},
		{pgtype.UUIDOID, uuid.UUID(benchTopic())},
	} {
		b, err := types.Encode(p.oid, pgtype.BinaryFormatCode, p.value, nil)
		if err != nil {
			return nil, fmt.Errorf("encoding the parameters of an insert: %w", err)
		}
		values = append(values, b)
	}
	return values, nil
}
