package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"dedupledger/internal/devservices"
)

// link is a proxy in front of one port of a service.
type link struct {
	proxy *toxiproxy.Proxy
	addr  string

	mu     sync.Mutex
	toxics []string
}

// reserve is an address for a link whose upstream is not there yet.
func reserve() (string, error) {
	port, err := devservices.FreePort()
	if err != nil {
		return "", fmt.Errorf("taking a port for a proxy: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port), nil
}

func openLink(name, listen, upstream string) (*link, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{proxy: toxiproxy.NewProxy(server, name, listen, upstream), addr: listen}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("starting proxy %s: %w", name, err)
	}
	return l, nil
}

// blackHole lets nothing through, in neither direction, without closing
// anything: connections that are open hang, new ones too.
func (l *link) blackHole() error {
	if err := l.add("hole-up", `"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}`); err != nil {
		return err
	}
	return l.add("hole-down", `"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}`)
}

// slow adds latency in both directions.
func (l *link) slow(milliseconds int) error {
	if err := l.add("slow-up", fmt.Sprintf(`"type": "latency", "stream": "upstream", "attributes": {"latency": %d, "jitter": %d}`, milliseconds, milliseconds/3)); err != nil {
		return err
	}
	return l.add("slow-down", fmt.Sprintf(`"type": "latency", "stream": "downstream", "attributes": {"latency": %d, "jitter": %d}`, milliseconds, milliseconds/3))
}

func (l *link) add(name, toxic string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(`{"name": %q, %s}`, name, toxic))); err != nil {
		return fmt.Errorf("harming the link %s: %w", l.proxy.Name, err)
	}
	l.toxics = append(l.toxics, name)
	return nil
}

// heal takes all harm away. What a black hole swallowed is lost, so its
// connections are closed.
func (l *link) heal(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.toxics {
		if err := l.proxy.Toxics.RemoveToxic(ctx, name); err != nil {
			return fmt.Errorf("healing the link %s: %w", l.proxy.Name, err)
		}
	}
	l.toxics = nil
	return nil
}

// redirect sends clients to another server; those that are connected are cut.
func (l *link) redirect(upstream string) error {
	err := l.proxy.Update(&toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: upstream, Enabled: false})
	if err != nil {
		return fmt.Errorf("redirecting %s: %w", l.proxy.Name, err)
	}
	if err := l.proxy.Start(); err != nil {
		return fmt.Errorf("redirecting %s: %w", l.proxy.Name, err)
	}
	return nil
}

func (l *link) close() { l.proxy.Stop() }
