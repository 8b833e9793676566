package ledger

import "time"

// Clock ties Postgres's clock to the local one at one registration, so that
// what is left of a window can be told later without asking Postgres again.
//
// Local is taken before the registration is sent and Postgres is read during
// it. So the local time since Local is never less than Postgres's time since
// Postgres, and an end computed from both is early, never late.
type Clock struct {
	Postgres time.Time // Answer.Now
	Local    time.Time // with its monotonic reading, from before the call
}

// Elapsed is the upper bound of what has passed on Postgres's clock at local.
func (c Clock) Elapsed(local time.Time) time.Duration {
	return max(0, local.Sub(c.Local))
}
