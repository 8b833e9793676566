package processor

import "dedupledger/ledger"

// decide is the verdict on one registered record. Pure: the registration, the
// row the ledger answered with, and nothing else.
func decide(r *ledger.Registration, res *ledger.Result) (ledger.Verdict, string) {
	if len(r.Keys) == 0 {
		return ledger.Invalid, r.Reason
	}
	if res.Refused != "" {
		return ledger.Invalid, res.Refused
	}
	return ledger.JudgeResult(r, res)
}

// observes reports whether a record of a flow that only observes goes to clean,
// marked. Everything does but what clean cannot take. Pure.
func observes(v ledger.Verdict, reason string) bool {
	return v != ledger.New && reason != reasonTooLarge && reason != reasonOutputRejected
}

// omits reports whether a repeat leaves its payload out: the first so many
// repeats of a row carry it, and of those that differ from the row the first so
// many again, so that a changed payload is not lost behind plain repeats. With
// noPayload none carries it. Pure: the number is the record's own, and the same when it comes again.
func omits(v ledger.Verdict, res *ledger.Result, noPayload bool, copies int64) bool {
	return (v == ledger.Seen || v == ledger.Drift) && (noPayload || res.Copy > copies)
}
