package ledger

import "fmt"

// GapKind says how a gap came about; stored, a closed list.
type GapKind string

// The kinds.
const (
	GapLogStart GapKind = "log_start" // retention took records before they were read
	GapEpoch    GapKind = "epoch"     // an unclean election cut the log; what was there was decided and never committed
	GapSkip     GapKind = "skip"      // dedup skip
	GapRetired  GapKind = "retired"   // dedup topics retire
	GapNoOutput GapKind = "no_output" // learning found records in raw and no output of them
)

// Range is part of a partition, by positions: From belongs to it, To does not.
type Range struct{ From, To Position }

// Contains reports whether a record at p lies in the range.
func (r Range) Contains(p Position) bool { return !p.Less(r.From) && p.Less(r.To) }

// Offsets is how many offsets the range spans; markers and records that were
// aborted are among them. A range that goes back in offsets, where a log was
// cut, has as many as were cut at least: none that is known.
func (r Range) Offsets() int64 { return max(0, r.To.Offset-r.From.Offset) }

func (r Range) String() string { return fmt.Sprintf("%s..%s", r.From, r.To) }

// Gap is a range of a partition whose records get no output, ever (ARCHITECTURE
// §4). A row whose origin lies in one is an orphan: it was decided and never
// committed, and the next copy of its key is NEW.
type Gap struct {
	Partition Partition
	Range
	Kind GapKind
	Note string // for people, or ""
}
