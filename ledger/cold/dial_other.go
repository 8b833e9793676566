//go:build !linux

package cold

import (
	"syscall"
	"time"
)

// setUserTimeout is Linux's alone; elsewhere keepalives have to do.
func setUserTimeout(syscall.RawConn, time.Duration) error { return nil }
