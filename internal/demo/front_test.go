package demo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFront: one address for all filters, also while none is there, and a
// second demo beside the first takes another.
func TestFront(t *testing.T) {
	t.Parallel()
	f, err := openFront(t.Context())
	require.NoError(t, err)
	second, err := openFront(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, f.addr, second.addr)
	require.NoError(t, second.close())

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func() (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.addr+"/readyz", nil)
		require.NoError(t, err)
		answer, err := client.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode, string(body)
	}
	code, _ := ask()
	require.Equal(t, http.StatusBadGateway, code)
	for n := range 2 {
		filter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "filter ", n)
		}))
		f.lead(filter.Listener.Addr().String())
		code, body := ask()
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, fmt.Sprint("filter ", n), body)
		filter.Close()
		code, _ = ask()
		require.Equal(t, http.StatusBadGateway, code)
	}
	require.NoError(t, f.close())
}
