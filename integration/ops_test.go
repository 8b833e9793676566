package integration

import (
	"net/http"
	"strconv"
	"testing"

	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
)

// TestOpsListen: with http.ops_listen the three pages are at that port and at no
// other, and the other one says where they went.
func TestOpsListen(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{})
	port, err := devservices.FreePort()
	require.NoError(t, err)
	ops := "127.0.0.1:" + strconv.Itoa(port)
	f := b.launch(t, 0, "DEDUP_HTTP_OPS_LISTEN="+ops)
	left := f.url
	f.url = "http://" + ops
	f.awaitReady(t)
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		f.url = "http://" + ops
		require.Equal(t, http.StatusOK, must(f.get(t.Context(), path)), path)
		f.url = left
		code, body, err := f.get(t.Context(), path)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, code, path)
		require.Contains(t, body, path)
		require.Contains(t, body, "http.ops_listen ("+ops+")")
	}
	f.term(t)

	b.requireFailure(t, []string{"DEDUP_HTTP_OPS_LISTEN=" + shared.services.RedisAddr}, `http.ops_listen "`+shared.services.RedisAddr+`"`, "address already in use")
	// Neither port, and it works.
	f = b.launch(t, 0, "DEDUP_HTTP_LISTEN=", "DEDUP_HTTP_OPS_LISTEN="+ops)
	f.url = "http://" + ops
	f.awaitReady(t)
	f.term(t)
}

// TestMetricScopes: so many flows have series of their own, the rest is other,
// and together they count every record that was committed, once.
func TestMetricScopes(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0, "DEDUP_METRICS_SCOPES=1")
	b.produce(t, orders("acme:edifact", 0, 5)...)
	b.check(t)
	b.produce(t, orders("acme:edifact", 0, 2)...)
	b.produce(t, orders("beta:edifact", 0, 3)...)
	b.produce(t, cutOrder("beta:edifact", "cut"))
	b.check(t)
	const name = "dedup_scope_messages_total"
	f.awaitMetric(t, "dedup_messages_total", nil, func(n float64) bool { return n == 21 })
	for series, want := range map[[2]string]float64{
		{`tenant="acme"`, `status="NEW"`}: 5, {`tenant="acme"`, `status="SEEN"`}: 9,
		{`tenant="other"`, `status="NEW"`}: 3, {`tenant="other"`, `status="INVALID"`}: 1,
		{`tenant="beta"`, ""}: 0, {"", ""}: 21,
	} {
		n, err := f.metric(t.Context(), name, series[:]...)
		require.NoError(t, err)
		require.InDelta(t, want, n, 0, "%v", series)
	}
	f.term(t)
	f = b.start(t, 0, "DEDUP_METRICS_SCOPES=0")
	b.produce(t, orders("acme:edifact", 0, 5)...)
	f.awaitMetric(t, "dedup_messages_total", nil, func(n float64) bool { return n == 10 })
	_, body, err := f.get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.NotContains(t, body, name)
	f.term(t)
}
