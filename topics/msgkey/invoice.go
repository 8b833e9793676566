package msgkey

import (
	"bytes"
	"strings"
)

// Kinds of invoices in a key. An invoice and a credit note may share number,
// seller and date.
const (
	kindInvoice    = "inv"
	kindCreditNote = "cn"
)

// sharedScheme is the scheme of invoices whose syntax shall not matter.
const sharedScheme = "inv"

// invoiceCodes is what a syntax answers where something is missing.
type invoiceCodes struct{ missingID, missingDate, badDate, missingSeller Code }

// invoice is what identifies an invoice of EN 16931. BT-1 is unique within the
// records of the seller alone (Directive 2006/112/EC Art. 226(2)).
type invoice struct {
	seen, done bool // the document has begun, and ended

	kind    string
	number  string              // BT-1
	date    string              // BT-2 as YYYY-MM-DD, "" if it is no date
	dated   bool                // there is a BT-2
	sellers [sellerKinds]string // encoded fields, in the order of DefaultSellers
}

func (v *invoice) finish() Code {
	if !v.seen {
		return SBDHNoBusinessDocument
	}
	return ""
}

// offer keeps the first identifier of a kind.
func (v *invoice) offer(kind Seller, scheme, value []byte) {
	if kind == SellerVAT {
		value = vatNumber(value)
	}
	at := &v.sellers[kind.index()]
	if *at != "" || len(value) == 0 {
		return
	}
	var stack [128]byte
	b := append(append(stack[:0], kind...), ':')
	if kind != SellerVAT {
		b = append(appendPart(b, scheme), ':')
	}
	*at = string(appendPart(b, value))
}

func (k Seller) index() int {
	switch k {
	case SellerVAT:
		return 0
	case SellerRegistration:
		return 1
	case SellerID:
		return 2
	case SellerEndpoint:
	}
	return 3
}

// vatNumber is a VAT identifier in upper case without blanks, dots and hyphens:
// people write "DE 123456789".
func vatNumber(value []byte) []byte {
	return bytes.Map(func(r rune) rune {
		switch {
		case r == ' ', r == '.', r == '-':
			return -1
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, value)
}

// key gives invoice kind, seller, BT-1 and BT-2 under a scheme.
func (v *invoice) key(scheme string, codes invoiceCodes, with *settings) (Found, Code) {
	seller := ""
	for _, k := range with.Sellers {
		if seller == "" {
			seller = v.sellers[k.index()]
		}
	}
	switch {
	case v.number == "":
		return Found{}, codes.missingID
	case !v.dated:
		return Found{}, codes.missingDate
	case v.date == "":
		return Found{}, codes.badDate
	case seller == "":
		return Found{}, codes.missingSeller
	}
	if with.SharedInvoices {
		scheme = sharedScheme
	}
	var stack [256]byte
	b := append(append(append(stack[:0], scheme...), ':'), v.kind...)
	b = append(append(append(b, '/'), seller...), '/')
	b = append(append(appendPart(b, v.number), '/'), v.date...)
	return newFound(string(b)), ""
}

// isoDate takes YYYY-MM-DD with or without a time zone (XML Schema's date) and
// gives it without.
func isoDate(v string) (string, bool) {
	if len(v) < len("2006-01-02") || !datePattern(v[:10], "dddd-dd-dd") || !monthAndDay(v[5:7], v[8:10]) {
		return "", false
	}
	zone := strings.TrimPrefix(strings.TrimPrefix(v[10:], "+"), "-")
	if v[10:] != "" && v[10:] != "Z" && (zone == v[10:] || !datePattern(zone, "dd:dd")) {
		return "", false
	}
	return v[:10], true
}

// basicDate takes YYYYMMDD (UNTDED 2379, format 102).
func basicDate(v string) (string, bool) {
	if !datePattern(v, "dddddddd") || !monthAndDay(v[4:6], v[6:]) {
		return "", false
	}
	return v[:4] + "-" + v[4:6] + "-" + v[6:], true
}

func monthAndDay(month, day string) bool {
	return month >= "01" && month <= "12" && day >= "01" && day <= "31"
}

// datePattern compares with a pattern where d is any digit.
func datePattern(v, pattern string) bool {
	if len(v) != len(pattern) {
		return false
	}
	for i := range len(v) {
		if pattern[i] == 'd' && !isDigit(v[i]) || pattern[i] != 'd' && v[i] != pattern[i] {
			return false
		}
	}
	return true
}
