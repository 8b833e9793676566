package integration

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// detour is a name behind which one server can take another's place. Connections
// that are open stay with the server they were made to, as they do when a name in
// DNS changes.
type detour struct {
	l *net.TCPListener

	mu      sync.Mutex
	target  string
	clients map[*net.TCPConn]bool
	conns   map[net.Conn]bool
	wg      sync.WaitGroup
}

func startDetour(t *testing.T, target string) *detour {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // such a listener takes no socket filter
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &detour{l: l.(*net.TCPListener), target: target, clients: map[*net.TCPConn]bool{}, conns: map[net.Conn]bool{}}
	d.wg.Go(d.accept)
	t.Cleanup(d.close)
	return d
}

func (d *detour) addr() string { return d.l.Addr().String() }

// lead sends new connections to another server.
func (d *detour) lead(target string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.target = target
}

func (d *detour) accept() {
	for {
		client, err := d.l.AcceptTCP()
		if err != nil {
			return
		}
		d.mu.Lock()
		target := d.target
		d.mu.Unlock()
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		d.mu.Lock()
		d.clients[client], d.conns[client], d.conns[server] = true, true, true
		d.mu.Unlock()
		for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
			d.wg.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
				_ = way[1].Close()
			})
		}
	}
}

func (d *detour) close() {
	_ = d.l.Close()
	d.mu.Lock()
	for c := range d.conns {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

// startPostgresDetour returns a detour and what DEDUP_POSTGRES_URL is through it.
func (b *bundle) startPostgresDetour(t *testing.T) (d *detour, setting string) {
	t.Helper()
	u, err := url.Parse(b.db.AppURL)
	require.NoError(t, err)
	d = startDetour(t, u.Host)
	u.Host = d.addr()
	return d, "DEDUP_POSTGRES_URL=" + u.String()
}
