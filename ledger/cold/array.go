package cold

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// array is a one-dimensional PostgreSQL array in binary format: number of
// dimensions, a flag for nulls, the element's type, length, lower bound, then
// each element behind its length. Written by hand because a chunk carries 30 of
// them with 500 elements each, and the general encoder looks up a plan for each
// element.
type array struct {
	buf   []byte
	n     uint32
	nulls bool
}

const arrayHeader = 20

func newArray(oid uint32, n, size int) *array {
	a := &array{buf: make([]byte, arrayHeader, arrayHeader+n*(size+4))}
	binary.BigEndian.PutUint32(a.buf[8:], oid)
	return a
}

// bytes is the finished array.
func (a *array) bytes() []byte {
	if a.n == 0 {
		return binary.BigEndian.AppendUint32(make([]byte, 8, 12), binary.BigEndian.Uint32(a.buf[8:]))
	}
	binary.BigEndian.PutUint32(a.buf, 1)
	if a.nulls {
		binary.BigEndian.PutUint32(a.buf[4:], 1)
	}
	binary.BigEndian.PutUint32(a.buf[12:], a.n)
	binary.BigEndian.PutUint32(a.buf[16:], 1)
	return a.buf
}

func (a *array) null() {
	a.n++
	a.nulls = true
	a.buf = binary.BigEndian.AppendUint32(a.buf, 0xffffffff) // length -1
}

func (a *array) int32(v int32) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 4)
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(v)) //nolint:gosec // two's complement is the wire format
}

func (a *array) int64(v int64) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(v)) //nolint:gosec // two's complement is the wire format
}

func (a *array) text(s string) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(s))) //nolint:gosec // bounded by the record size
	a.buf = append(a.buf, s...)
}

// optional is text, or null for "".
func (a *array) optional(s string) {
	if s == "" {
		a.null()
		return
	}
	a.text(s)
}

func (a *array) raw(b []byte) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(b))) //nolint:gosec // hashes and uuids
	a.buf = append(a.buf, b...)
}

func int4s(n int) *array  { return newArray(pgtype.Int4OID, n, 4) }
func int8s(n int) *array  { return newArray(pgtype.Int8OID, n, 8) }
func texts(n int) *array  { return newArray(pgtype.TextOID, n, 24) }
func byteas(n int) *array { return newArray(pgtype.ByteaOID, n, 32) }
func uuids(n int) *array  { return newArray(pgtype.UUIDOID, n, len(uuid.UUID{})) }
func times(n int) *array  { return newArray(pgtype.TimestamptzOID, n, 8) }

// epoch2000 is where PostgreSQL's binary timestamps start, in Unix microseconds.
const epoch2000 = 946684800 * 1_000_000

// time is a timestamptz, or null for the zero time.
func (a *array) time(t time.Time) {
	if t.IsZero() {
		a.null()
		return
	}
	a.int64(t.UnixMicro() - epoch2000)
}
