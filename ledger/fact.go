package ledger

import "time"

// Fact is what the hot tier remembers of a live row, written only after the
// commit of what it tells.
type Fact struct {
	Scope, Key    string
	Origin        Origin
	PayloadSHA256 [32]byte
	HashMode      string
	FirstSeenAt   time.Time
	ExpiresAt     time.Time
	RetryCount    int64
	Inserted      bool // the row was made in this batch: a live fact of another origin is then a witness
	Closed        bool // a tombstone: the row was closed before it expired
}

// Witness is a live fact of another origin where PostgreSQL had no row: a sign
// that PostgreSQL forgot. It changes no verdict.
type Witness struct {
	Fact    Fact   // what was written now
	Was     Origin // what Redis remembered
	WasSeen time.Time
}
