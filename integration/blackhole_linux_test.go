package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// swallow makes a black hole of the detour: what clients send arrives nowhere and
// is not acknowledged, no RST is sent, and where new connections are swallowed too
// their SYN is not answered. So it is with a machine that lost its power, and
// without the new ones with a firewall that has forgotten its connections. What
// servers send still passes: it answers what came before.
func (d *detour) swallow(t *testing.T, newOnes bool) {
	t.Helper()
	// A socket filter (Linux, BPF) that keeps 0 octets of every segment.
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	d.each(t, newOnes, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	})
}

// heal ends the black hole.
func (d *detour) heal(t *testing.T) {
	t.Helper()
	d.each(t, true, func(fd int) error {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		if err == unix.ENOENT { // made before or after
			return nil
		}
		return err
	})
}

func (d *detour) each(t *testing.T, listener bool, do func(fd int) error) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if listener {
		raw, err := d.l.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) { err = do(int(fd)) }))
		require.NoError(t, err)
	}
	for c := range d.clients {
		raw, err := c.SyscallConn()
		require.NoError(t, err)
		if raw.Control(func(fd uintptr) { err = do(int(fd)) }) == nil { // not closed meanwhile
			require.NoError(t, err)
		}
	}
}

// TestPostgresSwallowed: connections to PostgreSQL are swallowed without a RST:
// first those that are open, and the filter goes on by itself with new ones; then
// all of them, and it goes on when that heals. Nothing is lost or doubled, and it
// is the same process.
// Fault card: F03.
func TestPostgresSwallowed(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	d, through := b.startPostgresDetour(t)
	f := b.start(t, 0, through)
	l := b.startLoad(t, rng, "h", 4)
	l.passMore(t, 200)
	d.swallow(t, false)
	l.passMore(t, 300)
	d.swallow(t, true)
	f.awaitReason(t, `"postgres":"no answer for`)
	d.heal(t)
	l.passMore(t, 300)
	f.awaitReady(t)
	l.end(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
