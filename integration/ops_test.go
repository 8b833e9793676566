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
