package ledger

import "time"

// Import is what another system has accepted before, as `dedup import` enters it:
// at most MaxChunk lines.
type Import struct {
	From   string // where it comes from, at most 200 characters of valid UTF-8 without NUL
	DryRun bool   // the same answer, and nothing is written
	Lines  []ImportLine
}

// ImportLine is one acceptance. Its window counts from FirstSeenAt.
type ImportLine struct {
	Key           Key
	Flow          string // of the scope, as records of it come in
	PayloadSHA256 [32]byte
	FirstSeenAt   time.Time
}

// Imported is what became of a line. The numbers are those of dedup_import_1.
type Imported uint8

const (
	// Entered lines have made a row. All others have changed nothing.
	Entered Imported = 1
	// Known is a key with a live row, of any origin, or with one that began at this
	// time or later, whatever became of it since. Of several lines of a key the
	// first is entered, and the others are known.
	Known Imported = 2
	// KnownOtherHash is Known with another payload hash.
	KnownOtherHash Imported = 3
	// Over is a line whose window has ended.
	Over Imported = 4
	// Future is a line that lies ahead of PostgreSQL's clock.
	Future Imported = 5
	// MonthGone is a line whose row belongs into a month that was taken out of the
	// ledger.
	MonthGone Imported = 6
)
