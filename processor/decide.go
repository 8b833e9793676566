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
	return ledger.Judge(r, &res.Entry)
}
