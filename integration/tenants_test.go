package integration

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"dedupledger/integration/laws"
	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"

	"github.com/stretchr/testify/require"
)

// byTenant makes the bundle's duplicates and dead-letters topics per tenant, and
// returns the settings.
func (b *bundle) byTenant(t *testing.T, tenants ...string) (env []string) {
	t.Helper()
	for _, name := range []acl.Name{acl.Prefix(b.duplicates + "."), acl.Prefix(b.deadLetter + ".")} {
		b.allow(t, devservices.UserMaker, acl.Ensure([]acl.Name{name})...)
		b.allow(t, devservices.UserFilter, acl.Output(name)...)
	}
	for _, tenant := range tenants {
		b.perTenant = append(b.perTenant, b.duplicates+"."+tenant, b.deadLetter+"."+tenant)
	}
	b.perTenant = append(b.perTenant, b.deadLetter+".unknown")
	return []string{
		"DEDUP_TOPICS_DUPLICATES=" + b.duplicates + ".{tenant}", "DEDUP_TOPICS_DEAD_LETTER=" + b.deadLetter + ".{tenant}",
	}
}

// ofTheirTenants: each output that is not clean lies in a topic of its record's
// tenant, or of "unknown" where nobody can tell.
func (b *bundle) ofTheirTenants(t *testing.T) {
	t.Helper()
	o := b.observeOnly(t)
	for _, out := range o.Outputs {
		tenant, _, _ := strings.Cut(o.Sent[out.Origin].Account(), ":")
		if tenant == "?" {
			tenant = "unknown"
		}
		if out.Kind != laws.Clean {
			require.True(t, strings.HasSuffix(out.Record.Topic, "."+tenant), "%s of tenant %s in %s", out.Origin, tenant, out)
		}
	}
}

var ensureCommand = regexp.MustCompile(`create with: dedup (topics ensure [^"\\]+)`)

// TestTopicPerTenant: a tenant whose topic is missing keeps its partition
// waiting, with the command that makes it; the others go on, and it does once
// the topic is there.
// Fault card: F20.
func TestTopicPerTenant(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2, Unprepared: true})
	env := b.byTenant(t, "acme", "beta", "gamma")
	b.migrate(t)
	made := b.command(t, env, "topics", "ensure", b.raw[0], "--scope", "acme,beta:edifact")
	for _, tenant := range []string{"duplicates.%s.acme:", "dead-letter.%s.beta:", "dead-letter.%s.unknown:"} {
		require.Contains(t, made, fmt.Sprintf(tenant, b.id))
	}
	require.NotContains(t, made, ".gamma")
	at := func(partition int32, m message) message {
		m.Partition = partition
		return m
	}
	f := b.start(t, 0, env...)
	unreadable := at(0, message{Key: "acme", Value: []byte("x"), Want: want{Code: "scope.malformed"}})
	b.produce(t,
		at(0, order("acme:edifact", "1", 5)), at(0, order("acme:edifact", "1", 5)), at(0, order("beta:edifact", "1", 5)), at(0, order("beta:edifact", "1", 6)),
		at(0, cutOrder("beta:edifact", "2")), at(0, order("gamma:edifact", "1", 5)), unreadable,
		// From here on partition 0 waits for a topic of gamma's.
		at(0, order("gamma:edifact", "1", 5)), at(0, order("acme:edifact", "1", 5)), at(0, cutOrder("gamma:edifact", "3")))
	said := f.awaitHeld(t, b.raw[0]+"/0", "topics")
	require.Contains(t, said, b.duplicates+".gamma")
	b.produce(t, at(1, order("acme:edifact", "7", 5)), at(1, order("acme:edifact", "7", 5)))
	b.awaitEnd(t, b.duplicates+".acme", 1)
	f.awaitLog(t, "create with: dedup topics ensure "+b.raw[0]+" --scope gamma:edifact")

	// Killed while it waits, started again: it waits again.
	f.kill(t)
	f = b.launch(t, 0, env...)
	said = f.awaitHeld(t, b.raw[0]+"/0", "topics")
	command := ensureCommand.FindStringSubmatch(said)
	require.NotNil(t, command, said)
	b.command(t, env, strings.Fields(command[1])...)
	f.awaitReady(t)
	b.check(t)
	b.ofTheirTenants(t)
	require.Equal(t, map[string]int{"NEW": 4, "SEEN": 4, "DRIFT": 1, "INVALID": 3}, b.statuses(t))
	f.term(t)
	b.checkStopped(t)
}

// TestLearnFromTopicsPerTenant: what PostgreSQL lost is learned from the topics
// of all tenants, those included that came up after what it still knows.
func TestLearnFromTopicsPerTenant(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*filter, *testing.T){"running": nil, "stopped": (*filter).term, "killed": (*filter).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2, Unprepared: true})
			env := b.byTenant(t, "t0", "t1", "t2")
			b.migrate(t)
			b.command(t, env, "topics", "ensure", b.raw[0], "--scope", "t0,t1")
			f := b.start(t, 0, env...)
			b.produce(t, b.ofTenants("a", 12, 2)...)
			b.awaitHandled(t)
			copied := b.copyData(t, pg)
			b.command(t, env, "topics", "ensure", b.raw[0], "--scope", "t2")
			lost := append(b.ofTenants("b", 12, 3), b.ofTenants("a", 12, 2)...)
			b.produce(t, lost...)
			b.awaitOutputs(t)
			if end != nil {
				end(f, t)
			}
			b.putBack(t, pg, copied)
			b.produce(t, append(b.ofTenants("b", 15, 3), b.ofTenants("a", 15, 3)...)...)
			if end != nil {
				f = b.start(t, 0, env...)
			}
			b.judgeLearned(t, f, float64(len(lost)))
			b.ofTheirTenants(t)
		})
	}
}

// ofTenants are, for each of so many tenants, orders with repeats, changed ones
// and a broken one, over both partitions.
func (b *bundle) ofTenants(name string, n, tenants int) (messages []message) {
	for i := range n {
		scope := fmt.Sprintf("t%d:edifact", i%tenants)
		id := fmt.Sprintf("%s%d", name, i)
		for _, m := range []message{order(scope, id, 5), order(scope, id, 5), order(scope, id, 6), cutOrder(scope, id+"x")} {
			m.Partition = int32(i % 2)
			messages = append(messages, m)
		}
	}
	return messages
}

// awaitEnd waits until something is committed in a partition of a topic.
func (b *bundle) awaitEnd(t *testing.T, topic string, partition int32) {
	t.Helper()
	until(t, topic+" has a record", func(ctx context.Context) (bool, error) {
		ends, err := b.admin.ListCommittedOffsets(ctx, topic)
		end, ok := ends.Lookup(topic, partition)
		return ok && end.Offset > 0, err
	})
}
