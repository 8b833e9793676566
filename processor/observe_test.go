package processor

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// watch produces records of the flow that is only observed: "key=value", and "="
// alone for one without a key.
func (b *bundle) watch(flow string, partition int32, texts ...string) {
	b.t.Helper()
	var rs []*kgo.Record
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		r := &kgo.Record{Topic: rawTopic, Partition: partition, Key: []byte(flow), Value: []byte("payload " + value)}
		if key != "" {
			r.Headers = []kgo.RecordHeader{{Key: topics.HeaderKey, Value: []byte(key)}}
		}
		rs = append(rs, r)
	}
	require.NoError(b.t, b.cl.ProduceSync(b.t.Context(), rs...).FirstErr())
}

// told are the outputs as "topic status reason", each with its number.
func (b *bundle) told(n int) map[string]int {
	b.t.Helper()
	got := map[string]int{}
	origins := map[string]bool{}
	for _, r := range b.records(n) {
		status, _ := topics.Last(r.Headers, topics.HeaderStatus)
		reason, _ := topics.Last(r.Headers, topics.HeaderReason)
		origin, _ := topics.Last(r.Headers, topics.HeaderOrigin)
		require.False(b.t, origins[string(origin)], "law 1: two outputs of %s", origin)
		origins[string(origin)] = true
		got[strings.TrimSpace(r.Topic+" "+string(status)+" "+string(reason))]++
	}
	return got
}

// counted is a counter with one label, by its values.
func counted(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return got
}

// TestObserve: of a flow that only observes everything with a readable scope is
// in clean, marked, and counted as in one that enforces; its neighbours are not.
func TestObserve(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry := prometheus.NewRegistry()
	b.watch("acme:watched", 0, "a", "a", "a=changed", "=", "b", "never=")
	b.watch("acme:as2", 0, "a", "a", "=")
	b.watch("nonsense", 0, "x")
	b.ledger.fail = func(c *ledger.Chunk) error {
		for i := range c.Registrations {
			if len(c.Registrations[i].Keys) > 0 && c.Registrations[i].Keys[0].Key == "hdr:never" {
				return ledger.ErrRejected
			}
		}
		return nil
	}
	stop := b.start(func(c *Config) { c.Registry = registry })
	require.Equal(t, map[string]int{
		"clean.as2 NEW": 3, "clean.as2 SEEN": 1, "clean.as2 DRIFT": 1, "clean.as2 INVALID key.not_found": 1, "clean.as2 INVALID ledger.rejected": 1,
		"duplicates SEEN": 1, "dead-letter INVALID key.not_found": 1, "dead-letter INVALID scope.malformed": 1,
	}, b.told(10))
	stop()
	require.Equal(t, map[string]float64{"SEEN": 1, "DRIFT": 1, "INVALID": 2}, counted(t, registry, "dedup_observed_messages_total"))
	require.Equal(t, map[string]float64{"NEW": 3, "SEEN": 2, "DRIFT": 1, "INVALID": 4}, counted(t, registry, "dedup_messages_total"))
	bytes := counted(t, registry, "dedup_bytes_total")
	require.InDelta(t, bytes["in"], bytes["clean"]+bytes["duplicates"]+bytes["dead_letter"], 0)
	require.Greater(t, bytes["clean"], bytes["duplicates"]+bytes["dead_letter"], "7 of 10 are in clean")
}

// TestObservedIsNoNewWhenItIsLearned: what is in clean is read back as what its
// status says.
func TestObservedIsNoNewWhenItIsLearned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	restore := b.ledger.copyState()
	b.watch("acme:watched", 0, "a", "a", "=", "b", "a=changed")
	stop := b.start()
	b.told(5)
	stop()
	restore()
	b.watch("acme:watched", 0, "a", "c")
	b.start()
	require.Equal(t, map[string]int{
		"clean.as2 NEW": 3, "clean.as2 SEEN": 2, "clean.as2 DRIFT": 1, "clean.as2 INVALID key.not_found": 1,
	}, b.told(7))
	require.Positive(t, b.ledger.lessons)
	for verdict, n := range map[ledger.Verdict]int{ledger.New: 3, ledger.Seen: 2, ledger.Drift: 1, ledger.Invalid: 1} {
		require.Equal(t, n, b.ledger.count(verdict), verdict)
	}
}

// TestObservedThatCleanRefuses: what clean cannot take is a dead letter, be it the
// first, a repeat or INVALID, and harms no neighbour.
func TestObservedThatCleanRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new("2000")}}, cleanTopic)
	require.NoError(t, err)
	big, huge := strings.Repeat("x", 3000), strings.Repeat("x", 9000)
	b.watch("acme:watched", 0, "a", "first="+big, "b", "a="+big, "="+big, "c="+huge, "b", "first")
	b.start(func(c *Config) {
		c.MaxRecord = 8000
		c.Compression, c.ClientOptions = "none", []kgo.Opt{kgo.ProducerBatchMaxBytes(1 << 20)}
	})
	require.Equal(t, map[string]int{
		"clean.as2 NEW": 3, "clean.as2 SEEN": 1,
		"dead-letter INVALID output.rejected": 3, "dead-letter INVALID record.too_large": 1,
	}, b.told(8))
}

// TestObservedInTheTopicOfAnotherTenant: who names another tenant is observed by
// the rules of the topic's, whose accounts he is in.
func TestObservedInTheTopicOfAnotherTenant(t *testing.T) {
	t.Parallel()
	for flow, want := range map[string]bool{"watched": true, "as2": false} {
		s := &session{
			cfg:    &Config{Keyer: headerKey{}, MaxRecord: 1000},
			routes: map[string]*topics.Route{rawTopic: {Raw: rawTopic, Tenant: "acme"}},
		}
		it := item{reg: &ledger.Registration{}}
		s.decode(&batch{}, &it, &kgo.Record{Topic: rawTopic, Key: []byte("beta:" + flow)}, ledger.Origin{})
		require.Equal(t, topics.CodeTenantMismatch, it.reg.Reason)
		it.verdict, it.reason = decide(it.reg, &ledger.Result{})
		require.Equal(t, want, it.observed())
	}
}

// TestPayloadNone: repeats go to duplicates without their value from the first on.
func TestPayloadNone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.watch("acme:bare", 0, "a", "a", "a=changed", "=")
	b.watch("acme:as2", 0, "a", "a")
	b.start(func(c *Config) { c.PayloadCopies = 20 })
	without := map[string]int{}
	for _, r := range b.records(6) {
		scope, _ := topics.Last(r.Headers, topics.HeaderScope)
		if payload, _ := topics.Last(r.Headers, topics.HeaderPayload); string(payload) == topics.PayloadOmitted {
			require.Nil(t, r.Value)
			without[r.Topic+" "+string(scope)]++
		}
	}
	require.Equal(t, map[string]int{"duplicates acme:bare": 2}, without)
}
