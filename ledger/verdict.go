package ledger

// Verdict is what the ledger says of a record.
type Verdict uint8

// The verdicts; the zero value is none.
const (
	New Verdict = iota + 1
	Seen
	Drift
	Invalid
)

// String is the spelling in headers, metrics and tables.
func (v Verdict) String() string {
	switch v {
	case New:
		return "NEW"
	case Seen:
		return "SEEN"
	case Drift:
		return "DRIFT"
	case Invalid:
		return "INVALID"
	default:
		return "NONE"
	}
}

// ReasonNotComparable marks a SEEN whose hash has another mode than the row's.
const ReasonNotComparable = "hash.not_comparable"

// ReasonAlias marks a repeat that is one by an alias, where nothing else is to be
// said of it.
const ReasonAlias = "alias"

// JudgeResult is the verdict on a registered record by the answer to it.
func JudgeResult(r *Registration, res *Result) (v Verdict, reason string) {
	v, reason = Judge(r, &res.Entry)
	if reason == "" && v != New && res.Matched != "" {
		reason = ReasonAlias
	}
	return v, reason
}

// Judge is the verdict on a record given the live row of its key (ARCHITECTURE §4).
// It is pure: crash, abort, zombie, other batch borders and any order of
// processes meet the same row and get the same answer. reason is a closed code
// or "".
func Judge(r *Registration, e *Entry) (v Verdict, reason string) {
	if e.Origin == r.Origin {
		return New, ""
	}
	if e.PayloadSHA256 == r.PayloadSHA256 {
		return Seen, ""
	}
	if e.HashMode != r.HashMode {
		return Seen, ReasonNotComparable
	}
	if r.HashMode == HashRaw {
		return Drift, ""
	}
	if e.CanonicalSHA256 == r.CanonicalSHA256 {
		return Seen, ""
	}
	return Drift, "hash." + r.HashMode
}
