package topics_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"dedupledger/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newCluster is kfake: it shows what is asked of a broker, not what Apache Kafka
// does with it.
func newCluster(t *testing.T, brokers int) (*kfake.Cluster, *kadm.Client) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return cluster, kadm.NewClient(client)
}

func newPlan(t *testing.T, raw ...string) topics.Plan {
	t.Helper()
	const day = 24 * time.Hour
	return topics.Plan{
		Router: newRouter(t), Raw: raw, MaxRecordBytes: 32 << 20, Bootstrap: "kafka-1:9092",
		Create: topics.Create{
			Partitions: 6, Replication: 3, RawRetention: 3 * day, CleanRetention: 7 * day,
			DuplicatesRetention: 30 * day, DeadLetterRetention: 30 * day,
		},
	}
}

func names(list []topics.NewTopic) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.Name)
	}
	return out
}

func settings(t *testing.T, adm *kadm.Client, topic string) map[string]string {
	t.Helper()
	configs, err := adm.DescribeTopicConfigs(t.Context(), topic)
	require.NoError(t, err)
	out := map[string]string{}
	for _, c := range configs[0].Configs {
		out[c.Key] = c.MaybeValue()
	}
	return out
}

func TestEnsureCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 3)
	_, err := adm.CreateTopic(t.Context(), 9, 3, nil, "raw-ingest.old")
	require.NoError(t, err)
	_, err = adm.CreateTopic(t.Context(), 1, 3, nil, "unrelated")
	require.NoError(t, err)

	plan := newPlan(t, "raw-ingest.as2")
	plan.DryRun = true
	report, err := topics.Ensure(t.Context(), adm, plan)
	require.NoError(t, err)
	want := []string{"clean.as2", "duplicates", "dead-letter", "clean.old", "raw-ingest.as2"}
	require.Equal(t, want, names(report.Created))
	layout, err := topics.FetchLayout(t.Context(), adm, want...)
	require.NoError(t, err)
	for _, topic := range want {
		require.Zero(t, layout.Count(topic), "a dry run creates nothing")
	}

	plan.DryRun = false
	report, err = topics.Ensure(t.Context(), adm, plan)
	require.NoError(t, err)
	require.Equal(t, want, names(report.Created), "the operator topic is not among them")
	require.Equal(t, []string{"raw-ingest.old"}, names(report.Present))

	layout, err = topics.FetchLayout(t.Context(), adm, append(want, "raw-ingest.old", "none")...)
	require.NoError(t, err)
	for topic, count := range map[string]int32{
		"clean.as2": 6, "duplicates": 9, "dead-letter": 9, "raw-ingest.as2": 6, "clean.old": 9, "raw-ingest.old": 9, "none": 0,
	} {
		require.Equal(t, count, layout.Count(topic), topic)
	}
	for topic, retention := range map[string]string{
		"clean.as2": "604800000", "duplicates": "2592000000", "dead-letter": "2592000000", "raw-ingest.as2": "259200000",
	} {
		got := settings(t, adm, topic)
		for key, value := range map[string]string{
			"cleanup.policy": "delete", "retention.ms": retention, "max.message.bytes": "33619968", "min.insync.replicas": "2",
			"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": "9223372036854775807",
			"message.timestamp.before.max.ms": "9223372036854775807",
		} {
			require.Equal(t, value, got[key], "%s %s", topic, key)
		}
	}

	report, err = topics.Ensure(t.Context(), adm, plan)
	require.NoError(t, err)
	require.Empty(t, report.Created, "twice is harmless")
	require.Len(t, report.Present, 6)
}

func TestEnsureFewBrokers(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 1)
	plan := newPlan(t, "raw-ingest.as2")
	_, err := topics.Ensure(t.Context(), adm, plan)
	var small *topics.ReplicationError
	require.ErrorAs(t, err, &small)
	require.Len(t, small.Brokers, 1)
	require.ErrorContains(t, err, "topics.create.replication is 3")
	require.ErrorContains(t, err, small.Brokers[0])

	plan.Create.Replication = 1
	_, err = topics.Ensure(t.Context(), adm, plan)
	require.NoError(t, err)
	require.Equal(t, "1", settings(t, adm, "clean.as2")["min.insync.replicas"])

	plan.Create.Replication = 3
	_, err = topics.Ensure(t.Context(), adm, plan)
	require.NoError(t, err, "nothing to create: the setting is not looked at")
}

func TestEnsureRefusesNames(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 1)
	for _, name := range []string{"clean.as2", "raw-ingest.a b", "raw-ingest.", ""} {
		_, err := topics.Ensure(t.Context(), adm, newPlan(t, name))
		require.ErrorContains(t, err, "is not a raw topic", name)
	}
	report, err := topics.Ensure(t.Context(), adm, newPlan(t))
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), "nothing to do")
}

func TestEnsureReportsMismatches(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 3)
	create := func(topic string, partitions int32, replication int16, kv ...string) {
		configs := map[string]*string{"min.insync.replicas": new("2"), "max.message.bytes": new("33619968")}
		for i := 0; i < len(kv); i += 2 {
			configs[kv[i]] = &kv[i+1]
		}
		_, err := adm.CreateTopic(t.Context(), partitions, replication, configs, topic)
		require.NoError(t, err)
	}
	create("raw-ingest.as2", 12, 3, "retention.ms", "-1", "message.timestamp.after.max.ms", "7200000")
	create("clean.as2", 6, 3, "max.message.bytes", "1048588", "retention.ms", "604800000", "message.timestamp.after.max.ms", "3600000")
	create("duplicates", 1, 3, "min.insync.replicas", "1", "cleanup.policy", "compact,delete", "retention.ms", "-1")
	create("dead-letter", 1, 1, "message.timestamp.type", "LogAppendTime", "message.timestamp.before.max.ms", "1", "retention.ms", "-1")
	create("raw-ingest.b", 3, 3, "cleanup.policy", "compact", "message.timestamp.type", "LogAppendTime", "message.timestamp.after.max.ms", "9223372036854775807")
	create("clean.b", 4, 3)

	report, err := topics.Ensure(t.Context(), adm, newPlan(t))
	require.NoError(t, err, "a mismatch is no error")
	require.Empty(t, report.Created)
	var got []string
	for _, m := range report.Mismatches {
		key, _, _ := strings.Cut(m.Text, ",")
		key, _, _ = strings.Cut(key, ":")
		got = append(got, m.Topic+" "+key+" | "+m.Repair)
	}
	set := func(topic, kv string) string {
		return "kafka-configs.sh --bootstrap-server kafka-1:9092 --alter --entity-type topics --entity-name " + topic + " --add-config " + kv
	}
	grow := "kafka-topics.sh --bootstrap-server kafka-1:9092 --alter --topic %s --partitions %d"
	require.Equal(t, []string{
		"clean.as2 max.message.bytes 1048588 < max_record_bytes 33554432 + 65536 | " + set("clean.as2", "max.message.bytes=33619968"),
		"clean.as2 6 partitions | " + fmt.Sprintf(grow, "clean.as2", 12),
		"clean.as2 retention.ms 604800000 < -1 of raw-ingest.as2 | " + set("clean.as2", "retention.ms=-1"),
		"clean.as2 message.timestamp.after.max.ms 3600000 < 7200000 of raw-ingest.as2 | " + set("clean.as2", "message.timestamp.after.max.ms=9223372036854775807"),
		"duplicates cleanup.policy=compact | " + set("duplicates", "cleanup.policy=delete"),
		"duplicates min.insync.replicas 1 < 2 at replication 3 | " + set("duplicates", "min.insync.replicas=2"),
		"duplicates 1 partitions | " + fmt.Sprintf(grow, "duplicates", 12),
		"dead-letter min.insync.replicas 2 > replication 1 | " + set("dead-letter", "min.insync.replicas=1"),
		"dead-letter message.timestamp.type=LogAppendTime | " + set("dead-letter", "message.timestamp.type=CreateTime"),
		"dead-letter message.timestamp.before.max.ms 1 | " + set("dead-letter", "message.timestamp.before.max.ms=9223372036854775807"),
		"dead-letter 1 partitions | " + fmt.Sprintf(grow, "dead-letter", 12),
		"clean.b 4 partitions | " + fmt.Sprintf(grow, "raw-ingest.b", 4),
		"raw-ingest.b cleanup.policy=compact | " + set("raw-ingest.b", "cleanup.policy=delete"),
	}, got)

	var text strings.Builder
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), "unchanged    clean.as2: 6 partitions, replication 3\n")
	require.Contains(t, text.String(), "\n             repair: kafka-configs.sh")
}

// Existing raw topics and new outputs are held against each other too.
func TestEnsureComparesWithPlanned(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 3)
	_, err := adm.CreateTopic(t.Context(), 2, 3, map[string]*string{"retention.ms": new("1209600000"), "min.insync.replicas": new("2")}, "raw-ingest.as2")
	require.NoError(t, err)
	for range 2 { // the second time it is there
		report, err := topics.Ensure(t.Context(), adm, newPlan(t))
		require.NoError(t, err)
		require.Len(t, report.Mismatches, 1)
		require.Contains(t, report.Mismatches[0].Text, "retention.ms 604800000 < 1209600000 of raw-ingest.as2")
	}
}

func TestEnsureAtOnce(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 3)
	plan := newPlan(t, "raw-ingest.a", "raw-ingest.b")
	var wg sync.WaitGroup
	reports, errs := make([]topics.Report, 4), make([]error, 4)
	for i := range reports {
		wg.Go(func() { reports[i], errs[i] = topics.Ensure(t.Context(), adm, plan) })
	}
	wg.Wait()
	created := 0
	for i := range reports {
		require.NoError(t, errs[i])
		require.Empty(t, reports[i].Mismatches)
		require.Len(t, append(reports[i].Created, reports[i].Present...), 6)
		created += len(reports[i].Created)
	}
	require.Equal(t, 6, created, "each topic once")
}

// A broker hears of a new topic some moments after the controller has made it.
// One that denies a topic for two answers must not fail the command: seen on
// Apache Kafka with three brokers.
func TestEnsureWaitsForLateBrokers(t *testing.T) {
	t.Parallel()
	for _, fault := range []kfake.Fault{
		{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Resource: "raw-ingest.a"},
		{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "raw-ingest.a"}, // then creating it answers that it is there
		{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "clean.a"},
	} {
		cluster, adm := newCluster(t, 3)
		_, err := adm.CreateTopic(t.Context(), 2, 3, nil, "raw-ingest.a")
		require.NoError(t, err)
		fault.Err, fault.Count = kerr.UnknownTopicOrPartition, 3
		late := cluster.Fault(fault)
		report, err := topics.Ensure(t.Context(), adm, newPlan(t, "raw-ingest.a"))
		require.NoError(t, err)
		require.Equal(t, []string{"clean.a", "duplicates", "dead-letter"}, names(report.Created))
		require.Equal(t, []string{"raw-ingest.a"}, names(report.Present))
		require.Equal(t, 3, late.Hits())
	}
}

func TestEnsureNotAllowed(t *testing.T) {
	t.Parallel()
	cluster, adm := newCluster(t, 3)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	_, err := topics.Ensure(t.Context(), adm, newPlan(t, "raw-ingest.a"))
	require.ErrorIs(t, err, kerr.TopicAuthorizationFailed)
	require.ErrorContains(t, err, `creating topic "clean.a": this client's Kafka principal lacks CREATE on topic clean.a; grant: `)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 1)
	r := newRouter(t)
	for _, topic := range []string{"raw-ingest.a", "clean.a", "duplicates"} {
		_, err := adm.CreateTopic(t.Context(), 2, 1, nil, topic)
		require.NoError(t, err)
	}
	layout, err := topics.Check(t.Context(), adm, r, "raw-ingest.a", "raw-ingest.b")
	var missing *topics.MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, &topics.MissingError{Raw: "raw-ingest.a", Missing: []string{"dead-letter"}}, missing)
	require.ErrorContains(t, err, "create with: dedup topics ensure raw-ingest.a")
	require.ErrorContains(t, err, "dedup topics ensure raw-ingest.b")
	require.EqualValues(t, 2, layout.Count("clean.a"), "the layout is there nevertheless")

	_, err = adm.CreateTopic(t.Context(), 2, 1, nil, "dead-letter")
	require.NoError(t, err)
	layout, err = topics.Check(t.Context(), adm, r, "raw-ingest.a")
	require.NoError(t, err, "a topic made a moment ago is seen: no cache")
	id, ok := layout.ID("raw-ingest.a")
	require.True(t, ok)
	require.Equal(t, "raw-ingest.a", layout.Name(id))
	_, ok = layout.ID("raw-ingest.b")
	require.False(t, ok)
	_, err = newBuilderOf(t, r, layout, "raw-ingest.a")
	require.NoError(t, err)

	// Deleted and made again: another id, at once.
	_, err = adm.DeleteTopic(t.Context(), "raw-ingest.a")
	require.NoError(t, err)
	_, err = adm.CreateTopic(t.Context(), 3, 1, nil, "raw-ingest.a")
	require.NoError(t, err)
	layout, err = topics.Check(t.Context(), adm, r, "raw-ingest.a")
	require.NoError(t, err)
	again, _ := layout.ID("raw-ingest.a")
	require.NotEqual(t, id, again)
	require.EqualValues(t, 3, layout.Count("raw-ingest.a"))

	layout, err = topics.Check(t.Context(), adm, r, "other", "raw-ingest.a")
	require.ErrorIs(t, err, topics.ErrRoute)
	var route *topics.RouteError
	require.ErrorAs(t, err, &route)
	require.Equal(t, "other", route.Raw)
	require.EqualValues(t, 3, layout.Count("raw-ingest.a"), "one that has no outputs says nothing of the others")
	layout, err = topics.Check(t.Context(), adm, r)
	require.NoError(t, err)
	require.Zero(t, layout.Count("clean.a"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	layout, err = topics.Check(ctx, adm, r, "raw-ingest.a")
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, layout)
}

// TestEnsureChecksOnly: nothing is created, and each missing topic has the
// command that makes it.
func TestEnsureChecksOnly(t *testing.T) {
	t.Parallel()
	_, adm := newCluster(t, 1)
	_, err := adm.CreateTopic(t.Context(), 6, 1, nil, "raw-ingest.old")
	require.NoError(t, err)
	_, err = adm.CreateTopic(t.Context(), 5, 1, nil, "clean.old")
	require.NoError(t, err)
	plan := newPlan(t, "raw-ingest.as2")
	plan.Router, plan.CheckOnly = templates(t, "duplicates.{tenant}", "dead-letter"), true
	plan.Scopes = []topics.Scope{{Tenant: "acme", Flow: "as2"}}
	report, err := topics.Ensure(t.Context(), adm, plan)
	require.NoError(t, err)
	require.Equal(t, []string{"clean.as2", "dead-letter", "duplicates.acme", "raw-ingest.as2"}, names(report.Created))
	require.Equal(t, "dedup topics ensure raw-ingest.as2 --scope acme:as2", report.Created[0].Repair)
	require.Equal(t, "dedup topics ensure raw-ingest.as2 raw-ingest.old --scope acme:as2", report.Created[2].Repair)
	var text strings.Builder
	require.NoError(t, report.Print(&text))
	require.Contains(t, text.String(), "missing      duplicates.acme\n             repair: dedup topics ensure raw-ingest.as2 raw-ingest.old --scope acme:as2\n")
	require.Contains(t, text.String(), "mismatch     clean.old: 5 partitions, raw-ingest.old has 6")
	require.Contains(t, text.String(), "kafka-topics.sh --bootstrap-server kafka-1:9092 --alter --topic clean.old --partitions 6")
	layout, err := topics.FetchLayout(t.Context(), adm, "clean.as2", "dead-letter", "duplicates.acme", "raw-ingest.as2")
	require.NoError(t, err)
	for _, name := range names(report.Created) {
		require.Zero(t, layout.Count(name), name)
	}
}
