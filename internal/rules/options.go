package rules

import (
	"errors"
	"strconv"
	"strings"

	"dedupledger/internal/setting"
	"dedupledger/topics/msgkey"
)

// The values of message_level and scheme.
const (
	LevelInterchange = "interchange" // the interchange alone
	LevelGroup       = "group"       // and the groups of X12
	LevelMessage     = "message"     // and the messages of EDIFACT, the groups and transaction sets of X12
	SchemeFormat     = "format"      // ubl:… and cii:…
	SchemeInvoice    = "inv"         // inv:… for both
)

// options are settings of what extractors take for an identity (docs/message-keys.md).
// Each is decided before the key is known, by rules without key.
type options struct{ lenient, sellers, scheme, cxmlOrder, level, pointers, pattern, oftp1 int }

func (o *options) take(i int, r *Rule) {
	first(&o.lenient, i, r.Lenient.Set)
	first(&o.sellers, i, r.Sellers.Set)
	first(&o.scheme, i, r.Scheme.Set)
	first(&o.cxmlOrder, i, r.CXMLOrder.Set)
	first(&o.level, i, r.MessageLevel.Set)
	first(&o.pointers, i, r.JSONPointers.Set)
	first(&o.pattern, i, r.FilePattern.Set)
	first(&o.oftp1, i, r.OFTP1.Set)
}

func noOptions() options {
	return options{unset, unset, unset, unset, unset, unset, unset, unset}
}

// of makes what msgkey takes.
func (o *options) of(rules []compiled) msgkey.Options {
	var r Rule
	r.Lenient, r.Sellers, r.Scheme, r.CXMLOrder = rules[o.lenient].Lenient, rules[o.sellers].Sellers, rules[o.scheme].Scheme, rules[o.cxmlOrder].CXMLOrder
	r.MessageLevel, r.JSONPointers, r.FilePattern = rules[o.level].MessageLevel, rules[o.pointers].JSONPointers, rules[o.pattern].FilePattern
	r.OFTP1 = rules[o.oftp1].OFTP1
	return r.options()
}

// options of the rule's own settings; what it leaves open has its default.
func (r *Rule) options() msgkey.Options {
	o := msgkey.Options{
		Lenient: r.Lenient.Value, SharedInvoices: r.Scheme.Value == SchemeInvoice, CXMLOrder: r.CXMLOrder.Value,
		EDIFACTMessages: r.MessageLevel.Value == LevelMessage, JSONPointers: r.JSONPointers.Value,
		FilePattern: r.FilePattern.Value, OFTP1Dates: r.OFTP1.Value,
	}
	for _, s := range r.Sellers.Value {
		o.Sellers = append(o.Sellers, msgkey.Seller(s))
	}
	switch r.MessageLevel.Value {
	case LevelGroup:
		o.X12Level = msgkey.X12Groups
	case LevelMessage:
		o.X12Level = msgkey.X12Transactions
	}
	return o
}

// options refuses what the extractors would refuse, by its name and place here.
func (c *checker) options() {
	r := c.rule
	c.oneOf("message_level", r.MessageLevel, LevelInterchange, LevelGroup, LevelMessage)
	c.oneOf("scheme", r.Scheme, SchemeFormat, SchemeInvoice)
	if r.Sellers.Set && len(r.Sellers.Value) == 0 {
		c.report(r.Sellers.At, "sellers", "[]", "needs at least one of "+strings.Join(sellers(), ", "))
	}
	for _, s := range []struct {
		name string
		at   setting.Place
		o    msgkey.Options
	}{
		{"sellers", r.Sellers.At, msgkey.Options{Sellers: (&Rule{Sellers: r.Sellers}).options().Sellers}},
		{"json_pointers", r.JSONPointers.At, msgkey.Options{JSONPointers: r.JSONPointers.Value}},
		{"file_pattern", r.FilePattern.At, msgkey.Options{FilePattern: r.FilePattern.Value}},
	} {
		_, err := s.o.NewChain(msgkey.Header)
		if refused, ok := errors.AsType[*msgkey.OptionError](err); ok {
			c.report(s.at, s.name, strconv.Quote(refused.Value), refused.Why)
		}
	}
}

func sellers() []string {
	var names []string
	for _, s := range msgkey.DefaultSellers() {
		names = append(names, string(s))
	}
	return names
}
