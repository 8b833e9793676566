package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// MaxChunk is the largest number of registrations in one Chunk.
const MaxChunk = 500

// MaxAliases is how many keys a record may have beside its primary key. Clean
// records carry all of them, and our headers stay below 1 KiB.
const MaxAliases = 2

// UnreadableScope is the account of records whose scope cannot be read.
const UnreadableScope = "?:?"

// HashRaw is the mode of a plain SHA-256 of the value. Hashes of two modes are
// never compared.
const HashRaw = "raw"

// Key is one key of a record in its ledger scope.
type Key struct {
	Scope  string        // ledger scope: tenant:flow, or tenant:namespace
	Key    string        // canonical, at most 200 ASCII characters (topics/msgkey)
	Window time.Duration // whole seconds, 1 s to 400 days
}

// Digest is the first 8 bytes of SHA-256(scope ‖ 0 ‖ key), big endian, as the
// column h. It only finds candidates; scope and key are always compared too.
func (k Key) Digest() int64 {
	var text [maxScope + 1 + maxKey]byte // longer ones, which no table takes, go to the heap
	b := append(text[:0], k.Scope...)
	b = append(b, 0)
	sum := sha256.Sum256(append(b, k.Key...))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // a digest: the sign carries nothing
}

// The most characters that the tables take.
const (
	maxScope = 81
	maxKey   = 200
)

// Registration is one record as it asks to be registered.
type Registration struct {
	Origin  Origin
	Account string // tenant:flow the record is counted under, or UnreadableScope
	// Keys are the primary key and then at most MaxAliases aliases, in one ledger
	// scope and with one window. Empty: the record is INVALID and Reason says why.
	Keys            []Key
	Reason          string // closed code of an INVALID
	Bytes           int64  // size of the record's value
	PayloadSHA256   [32]byte
	CanonicalSHA256 [32]byte // of HashMode; unset where HashMode is HashRaw
	HashMode        string   // HashRaw, or the mode of CanonicalSHA256
	SourceService   string   // at most 40 characters of valid UTF-8 without NUL, or ""
	Attempt         string   // "client/attempt" of the API registration this record takes over, or ""
}

// Entry is a ledger row as a registration met or made it.
type Entry struct {
	Scope, Key      string
	Origin          Origin
	PayloadSHA256   [32]byte
	CanonicalSHA256 [32]byte
	HashMode        string
	FirstSeenAt     time.Time // UTC, Postgres's clock
	ExpiresAt       time.Time
	RetryCount      int64 // repeats so far, SEEN and DRIFT alike
	DriftCount      int64
}

// Advance moves a raw partition's position together with a chunk (ARCHITECTURE §4).
type Advance struct {
	Partition Partition
	Claim     Claim
	Seq       int64    // what the session last wrote or read; a lower one in the row is refused
	D         Position // likewise
	NewD      Position // behind the last polled record of the chunk
	W         Position // what the session knows to be committed
	Outputs   Outputs  // where the outputs of W end
}

// Chunk is what one registration statement takes: at most MaxChunk records in
// poll order, and one Advance per raw partition among them.
type Chunk struct {
	Gate          Gate
	Advances      []Advance
	Registrations []Registration
}

// Result is the answer to one registration.
type Result struct {
	// Entry is the live row that one of its keys has, or the one made by this very
	// record. Of a row that is an alias it is that of the primary key beside it,
	// where repeats are counted.
	Entry Entry
	// Matched is the key by which the record is a repeat, where an alias had part in
	// it: one of its keys, and one of the row's record. "" where it is the primary key
	// of both.
	Matched  string
	Inserted bool  // made by this record in this call
	Orphan   bool  // the row before was an orphan, which this call closed
	Repeat   int64 // number of repeats including this one; 0 for the first and its redelivery
	// Copy is the number of repeats of this one's kind including it: with the
	// row's payload, or with another one. It stays a record's own when it comes
	// again, as Repeat does, as long as its sighting is kept (sightings.keep_per_key).
	Copy int64
	// Refused is the closed code for a record the ledger will not register
	// ("scope.fed_by_api", D1); Entry is then empty and the record is INVALID.
	Refused string
}

// Answer is what a chunk came to. Results and Seqs are parallel to the chunk's
// Registrations and Advances; Results of INVALID registrations are empty.
type Answer struct {
	Now     time.Time // Postgres's clock after the locks
	Seqs    []int64
	Results []Result
}
