package cold

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dedupledger/ledger"
)

// params are the arguments of dedup_register_3.
func (k *chunk) params(keep int) (*params, error) {
	p := &params{values: make([][]byte, 0, registerArgs), oids: make([]uint32, 0, registerArgs)}
	p.int2(int16(k.Gate))
	p.int4(int32(keep)) //nolint:gosec // a small setting
	p.array(pgtype.TextArrayOID, textArray(k.scopes))
	p.add(pgtype.TextArrayOID, nil) // entry: auto
	p.array(pgtype.TextArrayOID, textArray(k.accounts))
	if err := k.addAdvances(p); err != nil {
		return nil, err
	}
	k.addLines(p)
	k.addAliases(p)
	return p, nil
}

func textArray(all []string) *array {
	a := texts(len(all))
	for _, s := range all {
		a.text(s)
	}
	return a
}

func (k *chunk) addAdvances(p *params) error {
	n := len(k.advances)
	topic, partition, claim, seq := uuids(n), int4s(n), uuids(n), int8s(n)
	dEpoch, dOffset, newEpoch, newOffset := int4s(n), int8s(n), int4s(n), int8s(n)
	wEpoch, wOffset, outputs := int4s(n), int8s(n), texts(n)
	minEpoch, minOffset := int4s(n), int8s(n)
	first := k.firsts()
	for i, index := range k.advances {
		a := &k.Advances[index]
		topic.raw(a.Partition.Topic[:])
		partition.int32(a.Partition.Partition)
		claim.raw(a.Claim[:])
		seq.int64(a.Seq)
		dEpoch.int32(a.D.Epoch)
		dOffset.int64(a.D.Offset)
		newEpoch.int32(a.NewD.Epoch)
		newOffset.int64(a.NewD.Offset)
		wEpoch.int32(a.W.Epoch)
		wOffset.int64(a.W.Offset)
		text, err := outputsText(a.Outputs)
		if err != nil {
			return err
		}
		outputs.text(text)
		minEpoch.int32(first[i].Epoch)
		minOffset.int64(first[i].Offset)
	}
	p.array(pgtype.UUIDArrayOID, topic)
	p.array(pgtype.Int4ArrayOID, partition)
	p.array(pgtype.UUIDArrayOID, claim)
	p.array(pgtype.Int8ArrayOID, seq)
	for _, pair := range [][2]*array{{dEpoch, dOffset}, {newEpoch, newOffset}, {wEpoch, wOffset}} {
		p.array(pgtype.Int4ArrayOID, pair[0])
		p.array(pgtype.Int8ArrayOID, pair[1])
	}
	p.array(pgtype.TextArrayOID, outputs)
	p.array(pgtype.Int4ArrayOID, minEpoch)
	p.array(pgtype.Int8ArrayOID, minOffset)
	return nil
}

// firsts are the lowest records per advance: one that is not below the old D
// says that nothing in the chunk was judged before. Without a record it is the
// position behind the chunk.
func (k *chunk) firsts() []ledger.Position {
	first := make([]ledger.Position, len(k.advances))
	for i, index := range k.advances {
		first[i] = k.Advances[index].NewD
	}
	for i := range k.Registrations {
		if a := k.advance[i]; a > 0 {
			if at := k.Registrations[i].Origin.At(); at.Less(first[a-1]) {
				first[a-1] = at
			}
		}
	}
	return first
}

func outputsText(o ledger.Outputs) (string, error) {
	if o == nil {
		return "{}", nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("writing where outputs end: %w", err)
	}
	return string(text), nil
}

// addLines adds one line per registration.
func (k *chunk) addLines(p *params) {
	n := len(k.Registrations)
	record, advance, epoch, offset := int4s(n), int4s(n), int4s(n), int8s(n)
	account, size, reason := int4s(n), int8s(n), texts(n)
	scope, digest, key, window, head := int4s(n), int8s(n), keys(n), int4s(n), int4s(n)
	payload, canonical, mode, source := byteas(n), byteas(n), texts(n), texts(n)
	client, attempt, takeover := texts(n), texts(n), texts(n)
	var reasons, modes, sources, takeovers bool
	kafka := k.Gate == ledger.GateKafka
	for i := range k.Registrations {
		r := &k.Registrations[i]
		record.int32(int32(i + 1))
		advance.int32(k.advance[i])
		epoch.int32(r.Origin.Epoch)
		offset.int64(r.Origin.Offset)
		account.int32(k.account[i])
		size.int64(r.Bytes)
		reason.optional(k.reason(i))
		reasons = reasons || k.reason(i) != ""
		k.addKey(i, scope, digest, key, window, head)
		payload.raw(r.PayloadSHA256[:])
		if r.HashMode == ledger.HashRaw || r.HashMode == "" {
			canonical.null()
			mode.null()
		} else {
			canonical.raw(r.CanonicalSHA256[:])
			mode.text(r.HashMode)
			modes = true
		}
		source.optional(r.SourceService)
		sources = sources || r.SourceService != ""
		if !kafka {
			client.text(r.Origin.Client)
			attempt.text(r.Origin.Attempt)
		}
		takeover.optional(r.Attempt)
		takeovers = takeovers || r.Attempt != ""
	}
	p.array(pgtype.Int4ArrayOID, record)
	p.array(pgtype.Int4ArrayOID, advance)
	p.sparse(pgtype.Int4ArrayOID, epoch, kafka)
	p.sparse(pgtype.Int8ArrayOID, offset, kafka)
	p.array(pgtype.Int4ArrayOID, account)
	p.array(pgtype.Int8ArrayOID, size)
	p.sparse(pgtype.TextArrayOID, reason, reasons)
	p.array(pgtype.Int4ArrayOID, scope)
	p.array(pgtype.Int8ArrayOID, digest)
	p.array(pgtype.TextArrayOID, key)
	p.array(pgtype.Int4ArrayOID, window)
	p.array(pgtype.Int4ArrayOID, head)
	p.array(pgtype.ByteaArrayOID, payload)
	p.sparse(pgtype.ByteaArrayOID, canonical, modes)
	p.sparse(pgtype.TextArrayOID, mode, modes)
	p.sparse(pgtype.TextArrayOID, source, sources)
	p.sparse(pgtype.TextArrayOID, client, !kafka)
	p.sparse(pgtype.TextArrayOID, attempt, !kafka)
	p.sparse(pgtype.TextArrayOID, takeover, takeovers)
}

// addAliases adds one line per alias. There is none as a rule, and then the
// function is told nothing.
func (k *chunk) addAliases(p *params) {
	n := len(k.aliases)
	line, digest, key, name := int4s(n), int8s(n), keys(n), int4s(n)
	for _, a := range k.aliases {
		of := &k.Registrations[a.of].Keys[a.key]
		line.int32(int32(a.of + 1)) //nolint:gosec // at most MaxChunk
		digest.int64(of.Digest())
		key.text(of.Key)
		name.int32(a.name)
	}
	p.sparse(pgtype.Int4ArrayOID, line, n > 0)
	p.sparse(pgtype.Int8ArrayOID, digest, n > 0)
	p.sparse(pgtype.TextArrayOID, key, n > 0)
	p.sparse(pgtype.Int4ArrayOID, name, n > 0)
}

// addKey adds the primary key of registration i. An INVALID has none; one that the
// ledger refused keeps its key's text, for the sighting.
func (k *chunk) addKey(i int, scope, digest, key, window, head *array) {
	r := &k.Registrations[i]
	if !k.keyed(i) {
		scope.null()
		digest.null()
		window.null()
		head.null()
		if len(r.Keys) > 0 {
			key.text(r.Keys[0].Key)
		} else {
			key.null()
		}
		return
	}
	scope.int32(k.scope[i])
	digest.int64(r.Keys[0].Digest())
	key.text(r.Keys[0].Key)
	window.int32(seconds(r.Keys[0].Window))
	head.int32(k.heads[i])
}

// seconds of a window; one that no column takes stays one that is refused.
func seconds(window time.Duration) int32 {
	return int32(min(window/time.Second, math.MaxInt32)) //nolint:gosec // bounded here
}
