package topics_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"dedupledger/topics"
	"dedupledger/topics/acl"
)

// restricted is a client that may do what these say, by topic.
func restricted(t *testing.T, allowed map[string][]kmsg.ACLOperation, exist ...string) *kadm.Client {
	t.Helper()
	var acls []kfake.ACL
	for topic, operations := range allowed {
		for _, o := range operations {
			acls = append(acls, kfake.ACL{
				Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: o, Allow: true,
			})
		}
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(2, exist...),
		kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "dedup", "dedup", acls...))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.SASL(plain.Auth{User: "dedup", Pass: "dedup"}.AsMechanism()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

const (
	read      = kmsg.ACLOperationRead
	write     = kmsg.ACLOperationWrite
	describe  = kmsg.ACLOperationDescribe
	describeC = kmsg.ACLOperationDescribeConfigs
)

func TestCheckTellsMissingRights(t *testing.T) {
	t.Parallel()
	adm := restricted(t, map[string][]kmsg.ACLOperation{
		"raw-ingest.a": {read}, "clean.a": {read, write, describeC}, "duplicates": {read, describeC},
		"raw-ingest.b": {describe}, "clean.b": {read, write, describeC},
		"raw-ingest.c": {read},
	}, "raw-ingest.a", "clean.a", "duplicates", "dead-letter", "raw-ingest.b", "clean.b", "raw-ingest.c", "clean.c")
	right := func(topic string, o acl.Operation) acl.Right {
		return acl.Right{Resource: acl.Topic, Name: acl.Named(topic), Operation: o}
	}
	all := func(topic string) acl.Rights { return acl.Output(acl.Named(topic)) }
	layout, err := topics.Check(t.Context(), adm, newRouter(t), "raw-ingest.a")
	var denied *topics.DeniedError
	require.ErrorAs(t, err, &denied)
	require.Equal(t, append(acl.Rights{right("duplicates", acl.Write)}, all("dead-letter")...), denied.Rights)
	require.True(t, denied.Unread, "dead-letter may not be seen")
	require.True(t, layout.Hidden("dead-letter"))
	require.NotErrorAs(t, err, new(*topics.MissingError), "what is hidden may be there")
	require.EqualValues(t, 2, layout.Count("clean.a"), "the layout is there nevertheless")
	require.ErrorContains(t, err, `raw topic "raw-ingest.a": missing right: WRITE on topic duplicates, READ on topic dead-letter`)

	_, err = topics.Check(t.Context(), adm, newRouter(t), "raw-ingest.b")
	require.ErrorAs(t, err, &denied)
	require.Contains(t, denied.Rights, right("raw-ingest.b", acl.Read))
	require.True(t, denied.Unread)

	adm = restricted(t, map[string][]kmsg.ACLOperation{
		"raw-ingest.a": {read}, "clean.a": {read, write, describeC}, "duplicates": {read, describeC}, "dead-letter": {write, read, describeC},
	}, "raw-ingest.a", "clean.a", "duplicates", "dead-letter")
	_, err = topics.Check(t.Context(), adm, newRouter(t), "raw-ingest.a")
	require.ErrorAs(t, err, &denied)
	require.Equal(t, acl.Rights{right("duplicates", acl.Write)}, denied.Rights)
	require.False(t, denied.Unread, "what is no duplicate goes on")
}

// A broker without an authorizer denies nothing.
func TestCheckWithoutAuthorizer(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 1)
	for _, topic := range []string{"raw-ingest.a", "clean.a", "duplicates", "dead-letter"} {
		_, err := adm.CreateTopic(t.Context(), 2, 1, nil, topic)
		require.NoError(t, err)
	}
	_, err := topics.Check(t.Context(), adm, newRouter(t), "raw-ingest.a")
	require.NoError(t, err)
}

func TestEnsureLacksRights(t *testing.T) {
	t.Parallel()
	adm := restricted(t, map[string][]kmsg.ACLOperation{
		"raw-ingest.a": {describe, describeC}, "clean.a": {describe}, "duplicates": {describeC},
	}, "raw-ingest.a", "clean.a", "duplicates")
	plan := newPlan(t, "raw-ingest.a")
	plan.Principal = "User:maker"
	_, err := topics.Ensure(t.Context(), adm, plan)
	require.EqualError(t, err, "Kafka principal User:maker lacks DESCRIBE_CONFIGS on topic clean.a, DESCRIBE on topic dead-letter, DESCRIBE on topic duplicates; grant: "+
		"kafka-acls.sh --bootstrap-server kafka-1:9092 --add --allow-principal User:maker --operation DescribeConfigs --topic clean.a && "+
		"kafka-acls.sh --bootstrap-server kafka-1:9092 --add --allow-principal User:maker --operation Describe --topic dead-letter && "+
		"kafka-acls.sh --bootstrap-server kafka-1:9092 --add --allow-principal User:maker --operation Describe --topic duplicates")
}

// What was listed tells of rights without another question; what may not be seen
// is not listed, and denies nothing.
func TestLayoutOfListedTopics(t *testing.T) {
	t.Parallel()
	adm := restricted(t, map[string][]kmsg.ACLOperation{
		"duplicates.acme": {read, describeC}, "duplicates.beta": {read, write, describeC},
	}, "duplicates.acme", "duplicates.beta", "duplicates.gamma")
	listed, err := adm.ListTopics(kadm.WithAuthorizedOps(t.Context()))
	require.NoError(t, err)
	layout := topics.LayoutOf(listed)
	var need acl.Rights
	for _, topic := range []string{"duplicates.acme", "duplicates.beta", "duplicates.gamma"} {
		need = append(need, acl.Output(acl.Named(topic))...)
	}
	require.Equal(t, acl.Rights{{Resource: acl.Topic, Name: acl.Named("duplicates.acme"), Operation: acl.Write}}, layout.Lacks(need))
	require.EqualValues(t, 2, layout.Count("duplicates.beta"))
	require.Zero(t, layout.Count("duplicates.gamma"))
}
