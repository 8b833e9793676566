package cold

import (
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
