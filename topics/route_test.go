package topics_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/topics"
)

func templates(t testing.TB, duplicates, deadLetter string) *topics.Router {
	t.Helper()
	n := defaults()
	n.Duplicates, n.DeadLetter = duplicates, deadLetter
	r, err := topics.New(n)
	require.NoError(t, err)
	return r
}

func route(t testing.TB, r *topics.Router, raw string) *topics.Route {
	t.Helper()
	route, err := r.Route(raw)
	require.NoError(t, err)
	return route
}

func TestRouteTemplates(t *testing.T) {
	t.Parallel()
	acme := topics.Scope{Tenant: "acme", Flow: "as2"}
	for _, c := range []struct {
		duplicates, deadLetter     string
		wantDuplicates, wantDead   string
		wantUnreadable             string
		known                      []string
		perTenant, perFlow, writes bool
	}{
		{"duplicates", "dead-letter", "duplicates", "dead-letter", "dead-letter", []string{"clean.in", "duplicates", "dead-letter"}, false, false, false},
		{"duplicates.$1", "dead.${1}x", "duplicates.in", "dead.inx", "dead.inx", []string{"clean.in", "duplicates.in", "dead.inx"}, false, false, false},
		{
			"duplicates.{tenant}", "dead-letter.{tenant}", "duplicates.acme", "dead-letter.acme", "dead-letter.unknown",
			[]string{"clean.in", "dead-letter.unknown"},
			true, false, true,
		},
		{
			"duplicates.{tenant}.{flow}", "dead-letter.{flow}", "duplicates.acme.as2", "dead-letter.as2", "dead-letter.unknown",
			[]string{"clean.in", "dead-letter.unknown"},
			true, true, false,
		},
		{
			"d.{tenant}.$1", "dead-letter", "d.acme.in", "dead-letter", "dead-letter",
			[]string{"clean.in", "dead-letter"},
			true, false, false,
		},
	} {
		r := templates(t, c.duplicates, c.deadLetter)
		out := route(t, r, "raw-ingest.in")
		require.Equal(t, c.wantDuplicates, out.Duplicates(acme))
		require.Equal(t, c.wantDead, out.DeadLetter(acme))
		require.Equal(t, c.wantUnreadable, out.DeadLetter(topics.Scope{}))
		require.Equal(t, c.known, out.Known())
		require.Equal(t, c.perTenant, r.PerTenant())
		require.Equal(t, c.perFlow, r.PerFlow())
		require.Equal(t, c.writes, out.MayWrite("duplicates.other"), c.duplicates)
		for _, name := range append(out.Known(), out.Of(acme)...) {
			require.True(t, out.MayWrite(name), name)
		}
		require.False(t, out.MayWrite("clean.other"))
		require.False(t, out.MayWrite("raw-ingest.in"))
	}
	// Groups are those of the raw topic, not of another.
	require.False(t, route(t, templates(t, "duplicates.$1", "dead-letter"), "raw-ingest.a").MayWrite("duplicates.b"))
}

// TestTenantsShareNoTopic: where the name has {tenant}, no two tenants are given
// one, whatever flows and topics there are; a tenant whose name could be read as
// another's goes to "unknown".
// Fault card: F20.
func TestTenantsShareNoTopic(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	part := func() string {
		var b strings.Builder
		for range rng.IntN(4) + 1 {
			b.WriteByte("ab.-_"[rng.IntN(5)])
		}
		return b.String()
	}
	for _, template := range []string{"d.{tenant}", "d.{tenant}.{flow}", "d.{flow}.{tenant}", "d.{tenant}-x.{flow}", "d.$1.{tenant}", "d.{tenant}_{flow}", "d.{tenant}.$1.{flow}"} {
		r := templates(t, template, "dead-letter")
		of, unknown := map[string]string{}, 0
		for range 3000 {
			s := topics.Scope{Tenant: part(), Flow: part()}
			name := route(t, r, "raw-ingest."+part()).Duplicates(s)
			if strings.Contains(name, topics.Unknown) {
				unknown++
				continue
			}
			if other, taken := of[name]; taken {
				require.Equal(t, other, s.Tenant, "%s: %s", template, name)
			}
			of[name] = s.Tenant
		}
		require.Equal(t, template == "d.{tenant}", unknown == 0, template)
	}
}

// TestRouteNamesAreLegal: for the longest tenant and flow; a raw topic whose
// name is too long for its outputs is refused before a record is read.
func TestRouteNamesAreLegal(t *testing.T) {
	t.Parallel()
	longest := topics.Scope{Tenant: strings.Repeat("t", 40), Flow: strings.Repeat("f", 40)}
	r := templates(t, "duplicates.$1.{tenant}", "dead-letter.{flow}")
	raw := "raw-ingest." + strings.Repeat("x", 249-40-len("duplicates.."))
	require.Len(t, route(t, r, raw).Duplicates(longest), 249)
	_, err := r.Route(raw + "x")
	require.ErrorIs(t, err, topics.ErrRoute)
	require.ErrorContains(t, err, "topics.duplicates")
	require.ErrorContains(t, err, "250 characters")
}

// TestBuilderPerTenant: an output whose topic is not there says so by its count,
// and is built right once the layout has it.
func TestBuilderPerTenant(t *testing.T) {
	t.Parallel()
	out := route(t, templates(t, "duplicates.{tenant}", "dead-letter.{tenant}"), "raw-ingest.as2")
	l := topics.NewLayout(map[string]topics.TopicInfo{
		"raw-ingest.as2": {ID: topicID, Partitions: 12}, "clean.as2": {Partitions: 12},
		"dead-letter.unknown": {Partitions: 1}, "duplicates.acme": {Partitions: 12}, "dead-letter.acme": {Partitions: 12},
	})
	b, err := topics.NewBuilder(out, l, l.Name)
	require.NoError(t, err)
	f := facts(ledger.Seen, "")
	f.Scope = "acme:as2"
	require.Equal(t, "duplicates.acme", b.Output(rawRecord(), f).Topic)
	f.Scope = "beta:as2"
	require.Equal(t, "duplicates.beta", b.Output(rawRecord(), f).Topic)
	require.Zero(t, l.Count("duplicates.beta"))

	f = facts(ledger.Invalid, "key.not_found")
	f.Scope = "acme:as2"
	require.Equal(t, "dead-letter.acme", b.Output(rawRecord(), f).Topic)
	f.Scope = ""
	unreadable := b.Output(rawRecord(), f)
	require.Equal(t, "dead-letter.unknown", unreadable.Topic)
	require.EqualValues(t, 0, unreadable.Partition, "of 1")
	require.Equal(t, "dead-letter.unknown", b.Reference(rawRecord(), f, unreadable.Timestamp).Topic)

	_, err = topics.NewBuilder(out, topics.NewLayout(map[string]topics.TopicInfo{
		"raw-ingest.as2": {Partitions: 12}, "clean.as2": {Partitions: 12},
	}), l.Name)
	require.ErrorContains(t, err, "dead-letter.unknown", "needed before the first record")
}

func TestTenantFromTopic(t *testing.T) {
	t.Parallel()
	n := defaults()
	n.TenantFromTopic = `^raw-ingest\.([^.]+)\.`
	r, err := topics.New(n)
	require.NoError(t, err)
	require.Equal(t, "acme", route(t, r, "raw-ingest.acme.as2").Tenant)
	_, err = r.Route("raw-ingest.acme")
	require.ErrorIs(t, err, topics.ErrRoute)
	require.ErrorContains(t, err, "does not match topics.tenant_from_topic")
	_, err = r.Route("raw-ingest." + strings.Repeat("t", 41) + ".as2")
	require.ErrorIs(t, err, topics.ErrRoute)
	require.ErrorContains(t, err, "no record can have it")
	require.Empty(t, route(t, newRouter(t), "raw-ingest.acme.as2").Tenant)
}
