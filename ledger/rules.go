package ledger

import "time"

// Rules are the rules that make keys, as the ledger keeps those that are active.
type Rules struct {
	Fingerprint string // "" where no rules are active yet
	Text        []byte // JSON, what the fingerprint stands for; nil where nobody kept it
	Since       time.Time
	Empty       bool // no rules, and the ledger has no keys
}

// LiveKeys are live rows that have most in common: how many there are of one
// ledger scope, flow and scheme. Aliases are not among them.
type LiveKeys struct {
	Scope  string // ledger scope
	Flow   string // of who registered them
	Scheme string // as the key begins: edifact
	Count  int64
}
