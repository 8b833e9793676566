package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"dedupledger/internal/app/config"
)

const (
	// askReadyWithin bounds the question: /readyz looks at no store.
	askReadyWithin = 3 * time.Second
	// maxReport of the answer is read; held partitions make it long.
	maxReport = 64 << 10
)

// AskReady asks the filter that runs on this machine with this configuration
// for its /readyz. The error is what it answers where it is not ready.
func AskReady(ctx context.Context, c *config.Config) error {
	url, err := readyURL(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askReadyWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no filter answers: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // all that is wanted has been read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReport))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the filter is not ready: %s", strings.TrimSpace(string(body)))
	}
	return nil
}

// readyURL is where a filter of this configuration listens. One that listens on
// every address is asked by loopback.
func readyURL(c *config.Config) (string, error) {
	listen := c.HTTP.OpsListen
	if listen == "" {
		listen = c.HTTP.Listen
	}
	if listen == "" {
		return "", errors.New("http.listen is empty: this filter tells nobody whether it is ready; set it, for example to 127.0.0.1:8080")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("http.listen %q: %w", listen, err)
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/readyz", nil
}
