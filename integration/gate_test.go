package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gate stands between one filter and PostgreSQL and can keep a statement that
// the filter has sent from arriving, as a network does to a process that is
// about to be replaced.
type gate struct {
	l      net.Listener
	target string

	mu     sync.Mutex
	conns  map[net.Conn]bool
	word   []byte // the statement that has it in it is kept; nil: none
	wg     sync.WaitGroup
	kept   chan struct{} // closed when a statement is kept
	arrive chan struct{} // closed when it may arrive
	answer chan string   // what the server said to it
}

// startGate returns the gate and what DEDUP_POSTGRES_URL is through it.
func (b *bundle) startGate(t *testing.T) (g *gate, setting string) {
	t.Helper()
	u, err := url.Parse(b.db.AppURL)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g = &gate{
		l: l, target: u.Host, conns: map[net.Conn]bool{},
		kept: make(chan struct{}), arrive: make(chan struct{}), answer: make(chan string, 1),
	}
	g.wg.Go(g.accept)
	t.Cleanup(g.close)
	u.Host = l.Addr().String()
	return g, "DEDUP_POSTGRES_URL=" + u.String()
}

// keep holds back the first statement from now on that has the word in it. It
// works once.
func (g *gate) keep(word string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.word = []byte(word)
}

// awaitKept returns when the filter has sent the statement.
func (g *gate) awaitKept(t *testing.T) {
	t.Helper()
	select {
	case <-g.kept:
	case <-time.After(outputsWithin):
		require.FailNow(t, "the statement was not sent")
	}
}

// let lets the statement arrive and returns the server's answer.
func (g *gate) let(t *testing.T) string {
	t.Helper()
	close(g.arrive)
	select {
	case a := <-g.answer:
		return a
	case <-time.After(outputsWithin):
		require.FailNow(t, "the statement was not answered")
		return ""
	}
}

// takes says whether the frame is the one to be kept.
func (g *gate) takes(frame []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.word == nil || frame[0] != 'B' || !bytes.Contains(frame, g.word) {
		return false
	}
	g.word = nil
	return true
}

func (g *gate) accept() {
	for {
		client, err := g.l.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", g.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		g.mu.Lock()
		g.conns[client], g.conns[server] = true, true
		g.mu.Unlock()
		asked := make(chan struct{}) // closed when this connection's statement arrives
		g.wg.Go(func() { g.pump(server, client, true, asked) })
		g.wg.Go(func() { g.pump(client, server, false, asked) })
	}
}

func (g *gate) close() {
	_ = g.l.Close()
	if !isClosed(g.arrive) {
		close(g.arrive)
	}
	g.mu.Lock()
	for c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.wg.Wait()
}

// pump copies frames of PostgreSQL's protocol 3 (a type, then a size of 4 bytes
// that counts itself) until either end closes, then closes both. The client's
// first frame has no type; there is no TLS.
func (g *gate) pump(to, from net.Conn, up bool, asked chan struct{}) {
	defer to.Close()
	defer from.Close()
	var answer bytes.Buffer
	for first := up; ; first = false {
		frame, err := readFrame(from, first)
		if err != nil {
			return
		}
		if up && !first && g.takes(frame) {
			close(g.kept)
			<-g.arrive
			close(asked)
		}
		if _, err := to.Write(frame); err != nil && up {
			return
		}
		// The answer is told also of a client that is gone.
		if !up && isClosed(asked) {
			answer.Write(frame)
			if frame[0] == 'Z' {
				select {
				case g.answer <- answer.String():
				default:
				}
			}
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func readFrame(from io.Reader, untyped bool) ([]byte, error) {
	head := make([]byte, 5)
	if untyped {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[len(head)-4:])
	if n < 4 || n > maxFrame {
		return nil, errors.New("no frame of PostgreSQL's protocol")
	}
	frame := slices.Concat(head, make([]byte, n-4))
	_, err := io.ReadFull(from, frame[len(head):])
	return frame, err
}
