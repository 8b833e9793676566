package cold

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"dedupledger/ledger"
)

var reject = newFunction("dedup_reject_1", "1", 15)

// Reject turns a registered record into INVALID because an output topic does
// not take it: its own row is closed, its account moves, its sighting is open
// with the reason. A second call changes nothing. A lost claim, and a record
// that was never decided, are ledger.ErrClaimLost.
func (l *Ledger) Reject(ctx context.Context, claim ledger.Claim, r *ledger.Registration, reason string) error {
	if r.Origin.Gate != ledger.GateKafka || len(r.Keys) > 1 {
		return fmt.Errorf("rejecting a record: gate %d with %d keys is not a Kafka record with one key", r.Origin.Gate, len(r.Keys))
	}
	p := &params{}
	p.uuid(r.Origin.Topic)
	p.int4(r.Origin.Partition)
	p.uuid(claim)
	p.int4(r.Origin.Epoch)
	p.int8(r.Origin.Offset)
	p.text(r.Account)
	if len(r.Keys) == 0 {
		p.add(pgtype.TextOID, nil)
		p.add(pgtype.TextOID, nil)
		p.add(pgtype.Int8OID, nil)
	} else {
		p.text(r.Keys[0].Scope)
		p.text(r.Keys[0].Key)
		p.int8(r.Keys[0].Digest())
	}
	p.int8(r.Bytes)
	p.bytea(r.PayloadSHA256[:])
	if r.HashMode == ledger.HashRaw || r.HashMode == "" {
		p.bytea(nil)
		p.text(ledger.HashRaw)
	} else {
		p.bytea(r.CanonicalSHA256[:])
		p.text(r.HashMode)
	}
	p.optional(r.SourceService)
	p.text(reason)
	return l.call(ctx, reject, p, func(*row) {})
}
