package integration

import (
	"context"
	"strings"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"
)

// TestRightsOfCheck: with the rights of docs/rights.md `dedup topics check` does
// its work, and without any one of them it fails.
func TestRightsOfCheck(t *testing.T) {
	t.Parallel()
	b := restrictedBundle(t, setup{Partitions: 1})
	who := []string{
		"DEDUP_KAFKA_SASL_USERNAME=" + devservices.UserFilter,
		"DEDUP_KAFKA_SASL_PASSWORD=" + devservices.RestrictedPassword(devservices.UserFilter),
	}
	var names []acl.Name
	for _, topic := range append(b.outputs(), b.raw...) {
		names = append(names, acl.Named(topic))
	}
	ends := func(what string, code int, says string, args ...string) {
		until(t, what, func(context.Context) (bool, error) { // brokers learn of rights a moment later
			r := b.try(t, who, args...)
			return r.code == code && strings.Contains(r.stdout+r.stderr, says), nil
		})
	}
	check := append([]string{"topics", "check"}, b.raw...)
	rights := acl.Check(names)
	b.allow(t, devservices.UserFilter, rights...)
	ends("check does its work", 0, "there        "+b.clean[0], check...)
	b.revoke(t, rights...)
	ends("check without any", 1, "lacks", check...)
	for _, r := range rights[:2] { // of one topic; the others are alike
		b.allow(t, devservices.UserFilter, rights...)
		ends("check does its work again", 0, "there        "+b.clean[0], check...)
		b.revoke(t, r)
		ends("check without "+r.String(), 1, r.Name.Text, check...)
	}
}
