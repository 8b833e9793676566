package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTenantFromTopic: a record of another tenant than its raw topic's is a dead
// letter of the topic's tenant, and takes no key of the one it names; its
// neighbours flow. A raw topic of no tenant is held.
// Fault card: F20.
func TestTenantFromTopic(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Topics: []string{"acme.as2", "beta.as2", "loose"}, Partitions: 1})
	const acme, beta, loose = 0, 1, 2
	at := func(topic int, m message) message {
		m.Topic, m.Partition = topic, 0
		return m
	}
	forged := func(topic int, m message, account string) message {
		m.Want = want{Account: account, Code: "scope.tenant_mismatch"}
		return at(topic, m)
	}
	b.produce(t,
		at(acme, order("acme:edifact", "1", 5)),
		forged(acme, order("beta:edifact", "1", 5), "acme:edifact"),
		forged(acme, order("ACME:as2", "1", 5), "acme:as2"),
		at(acme, order("acme:edifact", "1", 5)),
		at(acme, message{Key: "acme", Value: []byte("x"), Want: want{Code: "scope.malformed"}}),
		at(acme, cutOrder("acme:edifact", "2")),
		// What acme's sender has claimed for beta is still free there.
		at(beta, order("beta:edifact", "1", 5)),
		forged(beta, order("acme:edifact", "3", 5), "beta:edifact"),
		at(beta, order("beta:edifact", "1", 6)))
	flows := len(b.books())
	b.produce(t, at(loose, order("acme:edifact", "4", 5)))

	f := b.launch(t, 0, `DEDUP_TOPICS_TENANT_FROM_TOPIC=^raw-ingest\.[^.]+\.([^.]+)\.`)
	k := b.track(t)
	k.awaitCount(t, flows)
	k.client.Close()
	said := f.awaitHeld(t, b.raw[loose]+"/0", "topics")
	require.Contains(t, said, "does not match topics.tenant_from_topic")
	require.Contains(t, said, b.raw[loose])
	b.nothingCameOf(t, []place{b.books()[flows].Place})
	require.Equal(t, map[string]int{"NEW": 2, "SEEN": 1, "DRIFT": 1, "INVALID": 5}, b.statuses(t))
	f.term(t)

	// Without the setting the held topic flows, from its first record.
	f = b.start(t, 0)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
