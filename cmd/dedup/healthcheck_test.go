package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHealthcheck asks a listener in the filter's place; the real one is asked
// by docker-compose.yml.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	ready := true
	filter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			http.NotFound(w, r)
		} else if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"not ready","held":["raw-ingest.as2/3"]}` + "\n"))
		}
	}))
	defer filter.Close()
	at := strings.TrimPrefix(filter.URL, "http://")
	_, port, err := net.SplitHostPort(at)
	require.NoError(t, err)
	ask := func(listen string, more ...string) outcome {
		return call{environ: append([]string{
			"DEDUP_KAFKA_BROKERS=k:1", "DEDUP_REDIS_ADDRS=r:1", "DEDUP_POSTGRES_URL=postgres://p@h:1/d", "DEDUP_HTTP_LISTEN=" + listen,
		}, more...)}.run(t, "healthcheck")
	}

	for _, listen := range []string{at, ":" + port, "0.0.0.0:" + port} {
		require.Equal(t, outcome{code: exitDone}, ask(listen), listen)
	}
	require.Equal(t, outcome{code: exitDone}, ask("127.0.0.1:1", "DEDUP_HTTP_OPS_LISTEN="+at), "the ops pages have a port of their own")
	ready = false
	require.Equal(t, outcome{
		code: exitFailed, stderr: `dedup: the filter is not ready: {"status":"not ready","held":["raw-ingest.as2/3"]}` + "\n",
	}, ask(at))

	o := ask("")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "http.listen is empty")
	filter.Close()
	o = ask(at)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "no filter answers")
}
