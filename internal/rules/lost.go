package rules

import (
	"fmt"
	"slices"
	"strings"

	"dedupledger/ledger"
	"dedupledger/topics/msgkey"
)

// Fate is what becomes of live keys when other rules make the next ones.
type Fate int

// The fates. A row holds scope and key and no message, so what is Found may still
// be lost to a rule for some keys, which is not looked into.
const (
	Found  Fate = iota // the same message gets the same key
	Unsure             // it may get another one first
	Lost               // it gets another key, or none
)

// Fate tells what becomes of live keys that the rules of was have made, with a
// reason where they are not found. nil: nobody knows what made them.
func (s *Set) Fate(was *Set, k ledger.LiveKeys) (Fate, string) {
	tenant, _, _ := strings.Cut(k.Scope, ":")
	scope := tenant + ":" + k.Flow
	flow, known := s.Flow(scope)
	if !known {
		return Lost, "no rule speaks of " + scope + " any more"
	}
	now := flow.Decide(k.Scheme + ":")
	if now.LedgerScope != k.Scope {
		return Lost, "they are looked for in ledger scope " + now.LedgerScope
	}
	at := position(flow.Extractors, k.Scheme)
	alias := position(flow.Aliases, k.Scheme) >= 0
	if at < 0 && !alias {
		return Lost, fmt.Sprintf("the chain %s has no extractor for them", strings.Join(flow.Extractors, ", "))
	}
	if was == nil {
		return Unsure, "nobody knows which rules made them"
	}
	before, known := was.Flow(scope)
	if !known {
		return Found, ""
	}
	if before.Decide(k.Scheme+":").WithDate != now.WithDate && dated(k.Scheme) {
		return Lost, fmt.Sprintf("with_date is %v now", now.WithDate)
	}
	if option := changed(before.with, flow.with, k.Scheme); option != "" {
		return Unsure, option + " has changed"
	}
	if alias {
		return Found, "" // whatever is found before it
	}
	stood := before.Extractors[:max(0, position(before.Extractors, k.Scheme))]
	for _, x := range flow.Extractors[:at] {
		if !slices.Contains(stood, x) {
			return Unsure, x + " is tried first now"
		}
	}
	return Found, ""
}

// position is where the chain finds keys of a scheme, or -1.
func position(chain []string, scheme string) int {
	return slices.IndexFunc(chain, func(x string) bool {
		switch {
		case x == msgkey.Header:
			return scheme == "hdr"
		case scheme == SchemeInvoice:
			return x == "ubl" || x == "cii" || x == msgkey.Auto
		case x == msgkey.Auto:
			return slices.Contains(msgkey.Sniffed(), scheme)
		}
		return x == scheme
	})
}

func dated(scheme string) bool { return scheme == msgkey.EDIFACT || scheme == msgkey.X12 }

// changed names an option of a scheme's extractor that is another one now, or "".
func changed(was, is msgkey.Options, scheme string) string {
	sellers := !slices.Equal(was.Sellers, is.Sellers)
	switch scheme {
	case "ubl", "cii", SchemeInvoice:
		if sellers {
			return "sellers"
		}
		if was.SharedInvoices != is.SharedInvoices {
			return "scheme"
		}
	case msgkey.EDIFACT, msgkey.X12:
		if was.EDIFACTMessages != is.EDIFACTMessages || was.X12Level != is.X12Level {
			return "message_level"
		}
	case "cxml":
		if was.CXMLOrder != is.CXMLOrder {
			return "cxml_order"
		}
	case "json":
		if !slices.Equal(was.JSONPointers, is.JSONPointers) {
			return "json_pointers"
		}
	case "sftp":
		if was.FilePattern != is.FilePattern {
			return "file_pattern"
		}
	case "oftp2":
		if was.OFTP1Dates != is.OFTP1Dates {
			return "oftp1"
		}
	}
	return ""
}
