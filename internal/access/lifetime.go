package access

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// AgedError is a request that was not sent because its connection is too old:
// nothing of it was written, so it can be made again on another. It is a
// net.ErrClosed for whoever asks.
type AgedError struct{ Age time.Duration }

func (e *AgedError) Error() string {
	return fmt.Sprintf("the connection gives way to a new one after %s", e.Age.Round(time.Millisecond))
}

func (e *AgedError) Unwrap() error { return net.ErrClosed }

// PlainToTLSError is a TLS alert where an answer of Kafka's was expected.
type PlainToTLSError struct{}

func (e *PlainToTLSError) Error() string { return "the answer is a TLS alert" }

// Aging bounds the life of a connection to Kafka. A client that keeps its
// connections for ever would never read a rotated secret, and would find out
// about it when the broker restarts.
//
// An old connection refuses the next request before a byte of it is sent. The
// client then opens another one and sends the request there (franz-go,
// broker.handleReq: "if we wrote 0 bytes, the broker never saw the request").
// It refuses only while no answer is awaited: requests in flight would fail
// with the connection, and of the end of a transaction nobody would know
// whether it was applied. From twice the age on it refuses in any case.
type Aging struct {
	net.Conn
	born  time.Time
	limit time.Duration
	now   func() time.Time

	mu       sync.Mutex
	awaited  int // requests without an answer
	left     int // of the answer that is being read
	size     [4]byte
	sized    int
	answered bool
}

// NewAging gives a connection so long to live.
func NewAging(conn net.Conn, limit time.Duration, now func() time.Time) *Aging {
	return &Aging{Conn: conn, born: now(), limit: limit, now: now}
}

// Write sends one request, as franz-go does with each call.
func (a *Aging) Write(b []byte) (int, error) {
	a.mu.Lock()
	if err := a.tooOld(); err != nil {
		a.mu.Unlock()
		return 0, err
	}
	a.awaited++
	a.mu.Unlock()
	return a.Conn.Write(b) //nolint:wrapcheck // a net.Conn's errors are its own
}

// tooOld is called with the mutex held.
func (a *Aging) tooOld() error {
	age := a.now().Sub(a.born)
	if age > 2*a.limit || age > a.limit && a.awaited == 0 {
		return &AgedError{age}
	}
	return nil
}

// Read counts the answers that have come whole. Each begins with its length in
// four bytes.
func (a *Aging) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	if alert := a.count(b[:n]); alert {
		return 0, &PlainToTLSError{}
	}
	return n, err //nolint:wrapcheck // likewise
}

func (a *Aging) count(b []byte) (alert bool) {
	for len(b) > 0 {
		if a.left > 0 {
			n := min(a.left, len(b))
			a.left, b = a.left-n, b[n:]
			if a.left == 0 {
				a.awaited--
			}
			continue
		}
		a.size[a.sized] = b[0]
		a.sized, b = a.sized+1, b[1:]
		if a.sized < len(a.size) {
			continue
		}
		// Content type alert (21), then version 3.x (RFC 8446, 5.1): no first
		// answer of a broker is that long.
		if !a.answered && a.size[0] == 21 && a.size[1] == 3 {
			return true
		}
		a.answered, a.sized = true, 0
		a.left = int(a.size[0])<<24 | int(a.size[1])<<16 | int(a.size[2])<<8 | int(a.size[3])
		if a.left == 0 {
			a.awaited--
		}
	}
	return false
}
