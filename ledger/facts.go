package ledger

// FactsOf is what the hot tier is told of a batch: one fact per key, aliases as
// well, its last state. Call it only with the answers of committed registrations, results in
// the order of their registrations. It is pure.
//
// A row made in the batch stays Inserted although later copies of it in the
// same batch were repeats: Postgres had no row when the batch began, and that is
// what a witness is compared with.
func FactsOf(registrations []Registration, results []Result) []Fact {
	facts := make([]Fact, 0, len(results))
	at := make(map[[2]string]int, len(results))
	take := func(f Fact) {
		id := [2]string{f.Scope, f.Key}
		j, known := at[id]
		if !known {
			at[id] = len(facts)
			facts = append(facts, f)
			return
		}
		if sameRow(&facts[j], &f) {
			f.Inserted = f.Inserted || facts[j].Inserted
			f.RetryCount = max(f.RetryCount, facts[j].RetryCount)
		}
		facts[j] = f
	}
	for i := range min(len(registrations), len(results)) {
		if len(registrations[i].Keys) == 0 || results[i].Refused != "" || results[i].Entry.Key == "" {
			continue // nothing of it is in the ledger under a key
		}
		f := factOf(&results[i])
		take(f)
		for _, alias := range aliasesMet(&registrations[i], &results[i]) {
			f.Key = alias.Key
			take(f)
		}
	}
	return facts
}

// aliasesMet are the keys, beside that of the entry, whose row it is as well: all
// that a record has made or owns, or the one by which it is a repeat.
func aliasesMet(r *Registration, res *Result) []Key {
	if res.Entry.Origin == r.Origin {
		return r.Keys[1:]
	}
	if res.Matched != "" && res.Matched != res.Entry.Key {
		return []Key{{Key: res.Matched}}
	}
	return nil
}

func factOf(r *Result) Fact {
	return Fact{
		Scope: r.Entry.Scope, Key: r.Entry.Key,
		Origin:        r.Entry.Origin,
		PayloadSHA256: r.Entry.PayloadSHA256,
		HashMode:      r.Entry.HashMode,
		FirstSeenAt:   r.Entry.FirstSeenAt,
		ExpiresAt:     r.Entry.ExpiresAt,
		RetryCount:    max(r.Entry.RetryCount, r.Repeat),
		Inserted:      r.Inserted && !r.Orphan, // of an orphan's row Redis may well know: that is no witness
	}
}

func sameRow(a, b *Fact) bool {
	return a.Origin == b.Origin && a.FirstSeenAt.Equal(b.FirstSeenAt)
}
