package ledger

import "time"

// Standing is a row of dedup_position as a command sees it.
type Standing struct {
	PositionRow
	Partition Partition
	Topic     string // as the topic was called when it was claimed last
	Claim     Claim
	// Held is why the session that has the claim does not consume the partition,
	// and HeldWhy its words; "" where none says so.
	Held, HeldWhy string
	Retired       bool
	UpdatedAt     time.Time
}

// Action is what a person did, for dedup_action. Detail is kept as JSON.
type Action struct {
	Actor, Kind, Place, Reason string
	Detail                     any
}

// Change is what an action makes of one partition's position. Only what is set
// changes. The claim is replaced in any case, so a session that works on the
// partition is refused, and applies the position rule to the new row.
type Change struct {
	Partition Partition
	Claim     Claim     // as it was seen: another one now means that somebody took the partition
	Held      bool      // the row must still say that it is held
	To        *Position // W and D are raised to it
	Outputs   Outputs   // where the outputs of W end, or nil
	Group     string    // the new owner, or ""
	Retire    bool
	Gap       *Gap
}

// Orphan is a live row that a gap makes one, and how many copies of it are in
// duplicates.
type Orphan struct {
	Scope, Key  string
	Origin      Origin
	FirstSeenAt time.Time
	Copies      []Origin // outside the gap; at most as many as sightings are kept
}
