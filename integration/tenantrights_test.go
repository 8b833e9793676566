package integration

import (
	"slices"
	"strings"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"

	"github.com/stretchr/testify/require"
)

// TestRightOnATenantsTopic: a right on the duplicates topic of one tenant is
// missing at the start, and taken away while the filter runs. Its records wait,
// uncommitted; readiness is red with the line that grants it; the other tenant's
// flow. Once that line is run, the same process goes on.
// Fault card: F15.
func TestRightOnATenantsTopic(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lacks  func(topic string) acl.Rights
		hidden bool // Kafka does not tell whether the topic is there
	}{
		"WRITE": {lacks: func(topic string) acl.Rights { return acl.Output(acl.Named(topic))[1:2] }},
		"all":   {lacks: func(topic string) acl.Rights { return acl.Output(acl.Named(topic)) }, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, env := bundleOfTenants(t, "acme", "beta")
			topic := b.duplicates + ".acme"
			lacks := c.lacks(topic)
			grant := acl.Principal{Name: "User:filter", Bootstrap: b.entry()}.Commands(lacks)[0]
			b.revoke(t, lacks...)
			f := b.launch(t, 0, env...)
			for _, when := range []string{"start", "run"} {
				if when == "run" {
					b.revoke(t, lacks...)
				}
				if !c.hidden { // looked for, whether a record needs it or not
					f.awaitReason(t, "lacks "+lacks.String())
				}
				before := len(b.books())
				b.produce(t, b.repeats(0, "acme", when)...)
				b.produce(t, b.repeats(1, "beta", when)...)
				said := f.awaitHeld(t, b.raw[0]+"/0", "rights")
				require.Contains(t, said, grant)
				k := b.track(t)
				for _, s := range b.books()[before:] {
					if s.Place.Partition == 1 {
						k.awaitPlace(t, s.Place)
					}
				}
				b.nothingCameOf(t, []place{b.books()[before+1].Place}) // the repeat
				b.apply(t, said)
				f.awaitReady(t)
				b.awaitOutputs(t)
			}
			b.check(t)
			b.ofTheirTenants(t)
			f.awaitMetric(t, "dedup_missing_rights", nil, func(v float64) bool { return v == 0 })
			require.Equal(t, 2, strings.Count(f.text(t), "partition held"), "told once each time")
			f.term(t)
			b.checkStopped(t)
		})
	}
}

// bundleOfTenants has outputs of its own for each tenant, and the filter each of
// its rights by the name of the topic.
func bundleOfTenants(t *testing.T, tenants ...string) (b *bundle, env []string) {
	t.Helper()
	b = restrictedBundle(t, setup{Partitions: 2, Unprepared: true})
	env = b.byTenant(t, tenants...)
	b.revoke(t, acl.Output(acl.Prefix(b.duplicates+"."))...)
	b.revoke(t, acl.Output(acl.Prefix(b.deadLetter+"."))...)
	b.migrate(t)
	b.command(t, env, "topics", "ensure", b.raw[0], "--scope", strings.Join(tenants, ","))
	named := slices.Clone(b.perTenant)
	for _, topic := range append(named, b.clean...) {
		b.allow(t, devservices.UserFilter, acl.Output(acl.Named(topic))...)
	}
	b.allow(t, devservices.UserFilter, append(acl.Member(b.group), acl.Raw(acl.Named(b.raw[0]))...)...)
	return b, env
}

// repeats are a message of the tenant and a repeat of it.
func (b *bundle) repeats(partition int32, tenant, name string) (messages []message) {
	for range 2 {
		m := order(tenant+":edifact", name, 5)
		m.Partition = partition
		messages = append(messages, m)
	}
	return messages
}
