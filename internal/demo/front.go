package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

const usualPort = 8080

// front is the address of the filter's HTTP that stays the same while filters
// come and go. Were each filter to listen there itself, another program could
// take the port between a kill and the next start.
type front struct {
	addr   string
	server *http.Server
	done   chan error
	filter atomic.Pointer[url.URL] // nil: none has started
}

// openFront takes the usual port if it is free, else any.
func openFront(ctx context.Context) (*front, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(usualPort)))
	if err != nil {
		l, err = config.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listening on loopback: %w", err)
	}
	f := &front{addr: l.Addr().String(), done: make(chan error, 1)}
	f.server = &http.Server{Handler: f.proxy(), ReadHeaderTimeout: 5 * time.Second}
	go func() { f.done <- f.server.Serve(l) }()
	return f, nil
}

func (f *front) proxy() http.Handler {
	gone := func(w http.ResponseWriter, _ *http.Request, _ error) {
		http.Error(w, "the filter does not answer", http.StatusBadGateway)
	}
	proxy := &httputil.ReverseProxy{
		Transport:    &http.Transport{DisableKeepAlives: true},
		ErrorHandler: gone,
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(f.filter.Load()) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.filter.Load() == nil {
			gone(w, r, nil)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// lead sends who asks to this filter's address from now on.
func (f *front) lead(addr string) { f.filter.Store(&url.URL{Scheme: "http", Host: addr}) }

func (f *front) close() error {
	err := f.server.Close()
	if served := <-f.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("closing the HTTP address: %w", err)
	}
	return nil
}
