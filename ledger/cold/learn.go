package cold

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"dedupledger/ledger"
)

var learn = newFunction("dedup_learn_3", "seq, d_epoch, d_offset", 33)

// Learn takes one step of learning in one statement and answers the row's new
// seq and D. Given a second time it changes nothing but seq.
func (l *Ledger) Learn(ctx context.Context, lesson *ledger.Lesson) (seq int64, d ledger.Position, err error) {
	p, err := lessonParams(lesson, l.config.KeepPerKey)
	if err != nil {
		return 0, ledger.Position{}, err
	}
	err = l.call(ctx, learn, p, func(r *row) {
		r.scan(&seq)
		r.scan(&d.Epoch)
		r.scan(&d.Offset)
	})
	if err != nil {
		return 0, ledger.Position{}, err
	}
	return seq, d, nil
}

func lessonParams(lesson *ledger.Lesson, keep int) (*params, error) {
	for i := range lesson.Learned {
		o := lesson.Learned[i].Origin
		if o.Topic != lesson.Partition.Topic || o.Partition != lesson.Partition.Partition {
			return nil, fmt.Errorf("learned output %d is of partition %s/%d in a lesson of %s", i, o.Topic, o.Partition, lesson.Partition)
		}
	}
	outputs, err := outputsText(lesson.Outputs)
	if err != nil {
		return nil, err
	}
	p := &params{}
	p.uuid(lesson.Partition.Topic)
	p.int4(lesson.Partition.Partition)
	p.uuid(lesson.Claim)
	p.int8(lesson.Seq)
	p.int8(lesson.KnownSeq)
	p.int4(lesson.KnownD.Epoch)
	p.int8(lesson.KnownD.Offset)
	p.int4(lesson.To.Epoch)
	p.int8(lesson.To.Offset)
	p.text(outputs)
	p.int4(int32(keep)) //nolint:gosec // a small setting
	p.array(pgtype.TextArrayOID, textArray(lessonScopes(lesson.Learned)))
	addLearned(p, lesson.Learned)
	addGaps(p, lesson.Gaps)
	return p, nil
}

func addGaps(p *params, gaps []ledger.Range) {
	n := len(gaps)
	fromEpoch, from, toEpoch, to := int4s(n), int8s(n), int4s(n), int8s(n)
	for _, g := range gaps {
		fromEpoch.int32(g.From.Epoch)
		from.int64(g.From.Offset)
		toEpoch.int32(g.To.Epoch)
		to.int64(g.To.Offset)
	}
	p.array(pgtype.Int4ArrayOID, fromEpoch)
	p.array(pgtype.Int8ArrayOID, from)
	p.array(pgtype.Int4ArrayOID, toEpoch)
	p.array(pgtype.Int8ArrayOID, to)
}

func lessonScopes(learned []ledger.Learned) []string {
	var scopes []string
	for i := range learned {
		if learned[i].Key.Key != "" {
			scopes = append(scopes, learned[i].Key.Scope)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

func addLearned(p *params, learned []ledger.Learned) {
	n := len(learned)
	status, epoch, offset, account := texts(n), int4s(n), int8s(n), texts(n)
	scope, digest, key, reason, size := texts(n), int8s(n), texts(n), texts(n), int8s(n)
	payload, source, first, expires, matched := byteas(n), texts(n), times(n), times(n), texts(n)
	line, aliasDigest, alias := int4s(n), int8s(n), keys(n)
	for i := range learned {
		o := &learned[i]
		status.text(o.Verdict.String())
		epoch.int32(o.Origin.Epoch)
		offset.int64(o.Origin.Offset)
		account.optional(o.Account)
		if o.Key.Key == "" {
			scope.null()
			digest.null()
			key.null()
		} else {
			scope.text(o.Key.Scope)
			digest.int64(o.Key.Digest())
			key.text(o.Key.Key)
		}
		reason.optional(o.Reason)
		size.int64(o.Bytes)
		payload.raw(o.PayloadSHA256[:])
		source.optional(o.SourceService)
		first.time(o.FirstSeenAt)
		expires.time(o.ExpiresAt)
		matched.optional(o.Matched)
		for _, key := range o.Aliases {
			line.int32(int32(i + 1))
			aliasDigest.int64(ledger.Key{Scope: o.Key.Scope, Key: key}.Digest())
			alias.text(key)
		}
	}
	p.array(pgtype.TextArrayOID, status)
	p.array(pgtype.Int4ArrayOID, epoch)
	p.array(pgtype.Int8ArrayOID, offset)
	p.array(pgtype.TextArrayOID, account)
	p.array(pgtype.TextArrayOID, scope)
	p.array(pgtype.Int8ArrayOID, digest)
	p.array(pgtype.TextArrayOID, key)
	p.array(pgtype.TextArrayOID, reason)
	p.array(pgtype.Int8ArrayOID, size)
	p.array(pgtype.ByteaArrayOID, payload)
	p.array(pgtype.TextArrayOID, source)
	p.array(pgtype.TimestamptzArrayOID, first)
	p.array(pgtype.TimestamptzArrayOID, expires)
	p.array(pgtype.TextArrayOID, matched)
	p.array(pgtype.Int4ArrayOID, line)
	p.array(pgtype.Int8ArrayOID, aliasDigest)
	p.array(pgtype.TextArrayOID, alias)
}
