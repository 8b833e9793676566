package hot

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"time"

	"dedupledger/ledger"
)

// ModeCanonical stands in a fact that was read for any canonical hash mode: a
// fact keeps whether there was one, not which.
const ModeCanonical = "canonical"

const (
	version   = 1
	valueSize = 88

	flagClosed    = 1 << 0
	flagCanonical = 1 << 1

	// maxMicros is 2^53-1: up to there the script's numbers, which are doubles,
	// are exact. It is reached in the year 2255.
	maxMicros = 1<<53 - 1
)

// errRange refuses a fact whose times no clock of a ledger can have shown.
var errRange = errors.New("hot: a fact's times are out of range")

// Short is an origin as a fact can tell it: a Kafka record's as it is; of any
// other gate the gate and, as Attempt, the hex SHA-256(client ‖ 0 ‖ attempt). Compare
// what Get answers with Short of one's own origin.
func Short(o ledger.Origin) ledger.Origin {
	if o.Gate == ledger.GateKafka {
		o.Client, o.Attempt = "", ""
		return o
	}
	id := shortOrigin(o)
	return ledger.Origin{Gate: o.Gate, Attempt: hex.EncodeToString(id[:])}
}

func shortOrigin(o ledger.Origin) (b [32]byte) {
	if o.Gate != ledger.GateKafka {
		return sha256.Sum256([]byte(o.Client + "\x00" + o.Attempt))
	}
	copy(b[:16], o.Topic[:])
	binary.BigEndian.PutUint32(b[16:], uint32(o.Partition)) //nolint:gosec // the bits, there and back
	binary.BigEndian.PutUint32(b[20:], uint32(o.Epoch))     //nolint:gosec // likewise
	binary.BigEndian.PutUint64(b[24:], uint64(o.Offset))    //nolint:gosec // likewise
	return b
}

func longOrigin(gate ledger.Gate, b []byte) ledger.Origin {
	if gate != ledger.GateKafka {
		return ledger.Origin{Gate: gate, Attempt: hex.EncodeToString(b)}
	}
	o := ledger.Origin{
		Gate:      gate,
		Partition: int32(binary.BigEndian.Uint32(b[16:])), //nolint:gosec // the bits, there and back
		Epoch:     int32(binary.BigEndian.Uint32(b[20:])), //nolint:gosec // likewise
		Offset:    int64(binary.BigEndian.Uint64(b[24:])), //nolint:gosec // likewise
	}
	copy(o.Topic[:], b)
	return o
}

// encode appends a fact's value to dst; on an error dst is as it was.
func encode(dst []byte, f *ledger.Fact) ([]byte, error) {
	first, expires := f.FirstSeenAt.UnixMicro(), f.ExpiresAt.UnixMicro()
	if first < 0 || first > maxMicros || expires < first || expires > maxMicros {
		return dst, errRange
	}
	dst = append(dst, make([]byte, valueSize)...)
	b := dst[len(dst)-valueSize:]
	b[0] = version
	if f.Closed {
		b[1] |= flagClosed
	}
	if f.HashMode != ledger.HashRaw {
		b[1] |= flagCanonical
	}
	b[3] = byte(f.Origin.Gate)
	binary.BigEndian.PutUint64(b[4:], uint64(first))
	origin := shortOrigin(f.Origin)
	copy(b[12:], origin[:])
	binary.BigEndian.PutUint64(b[44:], uint64(expires))
	binary.BigEndian.PutUint32(b[52:], uint32(min(max(f.RetryCount, 0), math.MaxUint32)))
	copy(b[56:], f.PayloadSHA256[:])
	return dst, nil
}

// decode reads a value; false says that it is not one of ours. Scope, Key and
// Inserted are not in it.
func decode(b []byte) (ledger.Fact, bool) {
	if len(b) != valueSize || b[0] != version || b[1]&^(flagClosed|flagCanonical) != 0 || b[2] != 0 {
		return ledger.Fact{}, false
	}
	gate := ledger.Gate(b[3])
	first, expires := binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[44:])
	if gate < ledger.GateKafka || gate > ledger.GateImport || first > maxMicros || expires < first || expires > maxMicros {
		return ledger.Fact{}, false
	}
	f := ledger.Fact{
		Origin:      longOrigin(gate, b[12:44]),
		HashMode:    ledger.HashRaw,
		FirstSeenAt: time.UnixMicro(int64(first)).UTC(),
		ExpiresAt:   time.UnixMicro(int64(expires)).UTC(),
		RetryCount:  int64(binary.BigEndian.Uint32(b[52:])),
		Closed:      b[1]&flagClosed != 0,
	}
	if b[1]&flagCanonical != 0 {
		f.HashMode = ModeCanonical
	}
	copy(f.PayloadSHA256[:], b[56:])
	return f, true
}

// keyOf is the Redis key of a ledger key; base is prefix, ledger id and colon.
func keyOf(base, scope, key string) string {
	var text [320]byte // a scope has at most 81 bytes, a key 200
	b := append(text[:0], scope...)
	b = append(b, 0)
	sum := sha256.Sum256(append(b, key...))
	return string(base64.RawURLEncoding.AppendEncode(append(text[:0], base...), sum[:16]))
}
