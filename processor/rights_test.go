package processor

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"dedupledger/topics/acl"
)

// setupRights is setup under an authorizer: the tests' own client may do
// everything, the filter what it is granted.
func setupRights(t *testing.T) *bundle {
	t.Helper()
	b := setupWith(t, []kgo.Opt{as("admin")}, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "dedup", "dedup"))
	b.grant(filterRights()...)
	return b
}

func as(user string) kgo.Opt { return kgo.SASL(plain.Auth{User: user, Pass: user}.AsMechanism()) }

func filterRights() acl.Rights {
	return acl.Filter([]acl.Name{acl.Prefix("raw-ingest.")},
		[]acl.Name{acl.Prefix("clean."), acl.Named("duplicates"), acl.Named("dead-letter")}, "dedup")
}

// builder says the right to Kafka, to make it or to find it.
func builder(r acl.Right) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow("User:dedup").AllowHosts("*")
	switch r.Resource {
	case acl.Topic:
		b.Topics(r.Name.Text)
	case acl.Group:
		b.Groups(r.Name.Text)
	case acl.TransactionalID:
		b.TransactionalIDs(r.Name.Text)
	}
	pattern := kadm.ACLPatternLiteral
	if r.Name.Prefixed {
		pattern = kadm.ACLPatternPrefixed
	}
	return b.ResourcePatternType(pattern).Operations(map[acl.Operation]kmsg.ACLOperation{
		acl.Read: kmsg.ACLOperationRead, acl.Write: kmsg.ACLOperationWrite, acl.DescribeConfigs: kmsg.ACLOperationDescribeConfigs,
	}[r.Operation])
}

func (b *bundle) grant(rights ...acl.Right) {
	b.t.Helper()
	for _, r := range rights {
		made, err := b.adm.CreateACLs(b.t.Context(), builder(r))
		require.NoError(b.t, err)
		require.NoError(b.t, made[0].Err)
	}
}

func (b *bundle) revoke(rights ...acl.Right) {
	b.t.Helper()
	for _, r := range rights {
		gone, err := b.adm.DeleteACLs(b.t.Context(), builder(r))
		require.NoError(b.t, err)
		require.Len(b.t, gone[0].Deleted, 1, "%s was granted", r)
	}
}

// WRITE on duplicates is taken away: the partition that has a duplicate is held,
// its record is not lost, the others go on; granted again, it goes on by itself.
// Fault card: F15.
func TestOutputDenied(t *testing.T) {
	t.Parallel()
	b := setupRights(t)
	write := acl.Right{Resource: acl.Topic, Name: acl.Named("duplicates"), Operation: acl.Write}
	held := make(chan string, 16)
	b.produce(0, "a")
	b.start(func(c *Config) {
		c.ClientOptions, c.Log = []kgo.Opt{as("dedup")}, slog.New(&heldWatcher{held})
	})
	b.read(1)
	b.revoke(write)
	b.produce(0, "b", "a", "c")
	require.Equal(t, heldRights, <-held)
	b.produce(1, "d", "e")
	require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 d": 1, "clean.as2 e": 1}, b.read(3))
	b.grant(write)
	require.Equal(t, map[string]int{
		"clean.as2 a": 1, "clean.as2 d": 1, "clean.as2 e": 1, "clean.as2 b": 1, "clean.as2 c": 1, "duplicates a": 1,
	}, b.read(6))
}

// The group, the transactional id or the raw topic is taken away: the process
// does not end, however often it tries, and goes on once it may again.
// Fault card: F15.
func TestFilterDenied(t *testing.T) {
	t.Parallel()
	for name, right := range map[string]acl.Right{
		"group":            acl.Member("dedup")[0],
		"transactional id": acl.Member("dedup")[1],
		"raw topic":        acl.Raw(acl.Prefix("raw-ingest."))[0],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupRights(t)
			var log lines
			b.produce(0, "a")
			b.start(func(c *Config) {
				c.ClientOptions, c.Log = []kgo.Opt{as("dedup")}, slog.New(slog.NewTextHandler(&log, nil))
			})
			b.read(1)
			b.revoke(right)
			b.produce(0, "a", "b")
			b.produce(1, "c")
			require.Eventually(t, func() bool { return log.count("AUTHORIZATION_FAILED")+log.count("missing right") > 0 }, 60*time.Second, 5*time.Millisecond)
			b.grant(right)
			require.Equal(t, map[string]int{"clean.as2 a": 1, "clean.as2 b": 1, "clean.as2 c": 1, "duplicates a": 1}, b.read(4))
		})
	}
}
