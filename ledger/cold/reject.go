package cold

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"dedupledger/ledger"
)

var reject = newFunction("dedup_reject_2", "1", 17)

// Reject turns a registered record into INVALID because an output topic does
// not take it: its own rows are closed, its account moves, its sighting is open
// with the reason. A second call changes nothing. A lost claim, and a record
// that was never decided, are ledger.ErrClaimLost.
func (l *Ledger) Reject(ctx context.Context, claim ledger.Claim, r *ledger.Registration, reason string) error {
	if r.Origin.Gate != ledger.GateKafka {
		return fmt.Errorf("rejecting a record: gate %d is not Kafka's", r.Origin.Gate)
	}
	if err := checkAliases(r.Keys); err != nil {
		return fmt.Errorf("rejecting a record that %w", err)
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
	n := max(0, len(r.Keys)-1)
	digest, key := int8s(n), keys(n)
	for i := 1; i <= n; i++ {
		digest.int64(r.Keys[i].Digest())
		key.text(r.Keys[i].Key)
	}
	p.array(pgtype.Int8ArrayOID, digest)
	p.array(pgtype.TextArrayOID, key)
	return l.call(ctx, reject, p, func(*row) {})
}
