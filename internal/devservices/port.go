package devservices

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

const loopback = "127.0.0.1"

// Ports are taken from below the range the system takes for outgoing
// connections. In that range a stopped server's port can be given to any
// client, and a client that dials the stopped server can even be given the very
// port it dials and be connected to itself (TCP's simultaneous open): it would
// never see its server again.
//
// A port stays its process's until that ends (claimPort). Otherwise
//
//	A takes a port for a proxy whose server is still starting, or stops a
//	server that is to come back at its address
//	B, another test program, finds nobody there and takes it
//	A's proxy or server cannot start, or A's clients talk to B's
const (
	lowestPort  = 15000
	highestPort = 31999
	portTries   = 200
)

// heldPort keeps others from a port until the server that is to have it starts.
type heldPort struct {
	port int
	l    net.Listener
}

func holdPort() (*heldPort, error) {
	for range portTries {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		l, err := net.Listen("tcp", address(port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listening on loopback: %w", err)
		}
		if !claimPort(port) {
			_ = l.Close()
			continue
		}
		return &heldPort{port, l}, nil
	}
	return nil, fmt.Errorf("no free port found in %d tries between %d and %d", portTries, lowestPort, highestPort)
}

func (h *heldPort) release() { _ = h.l.Close() }

// portTaken reports whether somebody listens there.
func portTaken(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	_ = l.Close()
	return false
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// FreePort is a loopback port that was free a moment ago, for a process whose
// port must be known before it starts. It may be lost to a program that does not
// take its ports here: the process then fails to start.
func FreePort() (int, error) {
	h, err := holdPort()
	if err != nil {
		return 0, err
	}
	h.release()
	return h.port, nil
}
