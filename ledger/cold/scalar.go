package cold

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

func (p *params) int2(v int16) {
	p.add(pgtype.Int2OID, binary.BigEndian.AppendUint16(nil, uint16(v))) //nolint:gosec // two's complement is the wire format
}

func (p *params) int4(v int32) {
	p.add(pgtype.Int4OID, binary.BigEndian.AppendUint32(nil, uint32(v))) //nolint:gosec // two's complement is the wire format
}

func (p *params) int8(v int64) {
	p.add(pgtype.Int8OID, binary.BigEndian.AppendUint64(nil, uint64(v))) //nolint:gosec // two's complement is the wire format
}

func (p *params) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	p.add(pgtype.BoolOID, []byte{b})
}

func (p *params) uuid(v [16]byte) { p.add(pgtype.UUIDOID, v[:]) }

func (p *params) bytea(v []byte) { p.add(pgtype.ByteaOID, v) }

// text is never nil, which would be null.
func (p *params) text(s string) { p.add(pgtype.TextOID, append([]byte{}, s...)) }

// optional is text, or null for "".
func (p *params) optional(s string) {
	if s == "" {
		p.add(pgtype.TextOID, nil)
		return
	}
	p.text(s)
}
