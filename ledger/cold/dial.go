package cold

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"time"
)

// dialer makes a dead peer known within seconds: keepalives for an idle
// connection, the user timeout for one that waits for its data to arrive.
// Without them a black-holed server holds a session for a quarter of an hour.
func dialer(c Config) *net.Dialer {
	return &net.Dialer{
		Timeout: c.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable:   true,
			Idle:     10 * time.Second,
			Interval: 5 * time.Second,
			Count:    3,
		},
		Control: func(network, _ string, raw syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			return setUserTimeout(raw, c.TCPUserTimeout)
		},
	}
}

// ErrNoTLS says that the server answered a request for TLS with no.
var ErrNoTLS = errors.New("the server does not speak TLS")

func dial(d *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err //nolint:wrapcheck // the driver looks into net.OpError
		}
		return &asked{Conn: conn}, nil
	}
}

// asked gives the server's no a type: the driver reads the answer to its
// SSLRequest, one byte, and makes a text of it.
type asked struct {
	net.Conn
	answered bool
}

// Read is the connection's, but for the first byte.
func (a *asked) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if !a.answered {
		a.answered = true
		if len(b) == 1 && n == 1 && b[0] == 'N' {
			return 0, ErrNoTLS
		}
	}
	return n, err //nolint:wrapcheck // a net.Conn's errors are its own
}
