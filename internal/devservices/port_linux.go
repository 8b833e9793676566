package devservices

import (
	"strconv"
	"syscall"
)

// claimPort keeps a port for this process until it ends, among all that take
// theirs here, whether or not anybody listens there. It is a name in the abstract
// space of unix sockets: one space per network namespace, as for ports, nothing
// to clean up, and the kernel gives it back however the process ends. The
// descriptor is left open on purpose.
func claimPort(port int) bool {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // the port is still tried by listening
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: "@dedup-port-" + strconv.Itoa(port)}); err != nil {
		_ = syscall.Close(fd)
		return false
	}
	return true
}
