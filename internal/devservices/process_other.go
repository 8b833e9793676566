//go:build !linux

package devservices

import "syscall"

// attributes has no parent-death signal here: processes of a killed parent
// stay and must be ended by hand.
func attributes(c command) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if c.user != nil {
		a.Credential = c.user.credential()
	}
	return a
}
