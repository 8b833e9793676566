package devservices

import "syscall"

func attributes(c command) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.orphaned}
	if c.user != nil {
		a.Credential = c.user.credential()
	}
	return a
}
