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
//
// Nothing is allocated before the first element that is not null: most arrays
// of a chunk that may be left out are.
type array struct {
	buf   []byte
	oid   uint32
	size  int // room to make
	n     uint32
	nulls bool
}

const arrayHeader = 20

func newArray(oid uint32, n, size int) *array {
	return &array{oid: oid, size: arrayHeader + n*(size+4)}
}

// start makes room and writes the nulls so far.
func (a *array) start() {
	a.buf = make([]byte, arrayHeader, a.size)
	binary.BigEndian.PutUint32(a.buf[8:], a.oid)
	for range a.n {
		a.buf = binary.BigEndian.AppendUint32(a.buf, nullLength)
	}
}

// element begins one of so many bytes.
func (a *array) element(length int) {
	if a.buf == nil {
		a.start()
	}
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(length)) //nolint:gosec // bounded by the record size
}

// bytes is the finished array.
func (a *array) bytes() []byte {
	if a.n == 0 {
		return binary.BigEndian.AppendUint32(make([]byte, 8, 12), a.oid)
	}
	if a.buf == nil {
		a.start()
	}
	binary.BigEndian.PutUint32(a.buf, 1)
	if a.nulls {
		binary.BigEndian.PutUint32(a.buf[4:], 1)
	}
	binary.BigEndian.PutUint32(a.buf[12:], a.n)
	binary.BigEndian.PutUint32(a.buf[16:], 1)
	return a.buf
}

const nullLength = 0xffffffff // -1

func (a *array) null() {
	a.nulls = true
	if a.buf != nil {
		a.buf = binary.BigEndian.AppendUint32(a.buf, nullLength)
	}
	a.n++
}

func (a *array) int32(v int32) {
	a.element(4)
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(v)) //nolint:gosec // two's complement is the wire format
}

func (a *array) int64(v int64) {
	a.element(8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(v)) //nolint:gosec // two's complement is the wire format
}

func (a *array) text(s string) {
	a.element(len(s))
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
	a.element(len(b))
	a.buf = append(a.buf, b...)
}

func int4s(n int) *array  { return newArray(pgtype.Int4OID, n, 4) }
func int8s(n int) *array  { return newArray(pgtype.Int8OID, n, 8) }
func texts(n int) *array  { return newArray(pgtype.TextOID, n, 24) }
func keys(n int) *array   { return newArray(pgtype.TextOID, n, 64) }
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
