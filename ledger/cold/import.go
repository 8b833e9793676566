package cold

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"dedupledger/ledger"
)

var importLines = newFunction("dedup_import_1", "states", 9)

// Import enters lines in one statement; the answer is parallel to them. The same
// lines may come again after any error: those that were entered are known then.
func (l *Ledger) Import(ctx context.Context, in *ledger.Import) ([]ledger.Imported, error) {
	if len(in.Lines) > ledger.MaxChunk {
		return nil, fmt.Errorf("importing %d lines at once; %d are allowed", len(in.Lines), ledger.MaxChunk)
	}
	var states []int16
	if err := l.call(ctx, importLines, importParams(in), func(r *row) { r.scan(&states) }); err != nil {
		return nil, err
	}
	if len(states) != len(in.Lines) {
		return nil, fmt.Errorf("importing %d lines: %w: %d answers", len(in.Lines), ledger.ErrSchema, len(states))
	}
	out := make([]ledger.Imported, len(states))
	for i, s := range states {
		out[i] = ledger.Imported(s) //nolint:gosec // 1 to 6
	}
	return out, nil
}

func importParams(in *ledger.Import) *params {
	n := len(in.Lines)
	scope, flow, digest, key := texts(n), texts(n), int8s(n), keys(n)
	window, first, payload := int4s(n), times(n), byteas(n)
	for i := range in.Lines {
		line := &in.Lines[i]
		scope.text(line.Key.Scope)
		flow.text(line.Flow)
		digest.int64(line.Key.Digest())
		key.text(line.Key.Key)
		window.int32(seconds(line.Key.Window))
		first.time(line.FirstSeenAt)
		payload.raw(line.PayloadSHA256[:])
	}
	p := &params{}
	p.bool(in.DryRun)
	p.text(in.From)
	p.array(pgtype.TextArrayOID, scope)
	p.array(pgtype.TextArrayOID, flow)
	p.array(pgtype.Int8ArrayOID, digest)
	p.array(pgtype.TextArrayOID, key)
	p.array(pgtype.Int4ArrayOID, window)
	p.array(pgtype.TimestamptzArrayOID, first)
	p.array(pgtype.ByteaArrayOID, payload)
	return p
}
