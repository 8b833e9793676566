package integration

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
)

// The moments of a batch, each by the request that is next (Kafka protocol, API
// keys).
const (
	beforeProduce int16 = 0  // registered, nothing produced
	beforeOffsets int16 = 28 // outputs produced, the offsets not yet in the transaction
	beforeEnd     int16 = 26 // outputs and offsets in the transaction, not committed
)

// stopper stands between clients and a broker of its own and stops a filter at
// a moment of its batch.
type stopper struct {
	l net.Listener

	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool
	stops  []*stop
	wg     sync.WaitGroup
}

// stop is a moment at which a filter waits.
type stop struct {
	client string // prefix of its Kafka client ids
	key    int16

	once    sync.Once
	reached chan struct{} // closed when the filter has come to the moment
	free    chan struct{} // closed when it may go on
}

func startStopper(t *testing.T) *stopper {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &stopper{l: l, conns: map[net.Conn]bool{}}
	k, err := shared.services.StartKafka(t.Context(), devservices.KafkaOptions{Advertised: l.Addr().String()})
	require.NoError(t, err)
	p.target = k.Addr()
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.close()
		require.NoError(t, k.Close())
	})
	return p
}

func (p *stopper) addr() string { return p.l.Addr().String() }

// stop makes the bundle's filter of that slot wait where the request with the
// key is next. It ends with the test.
func (p *stopper) stop(t *testing.T, b *bundle, slot int, key int16) *stop {
	t.Helper()
	s := &stop{
		client: "dedup-ledger-" + b.group + "-" + strconv.Itoa(slot) + "-", key: key,
		reached: make(chan struct{}), free: make(chan struct{}),
	}
	p.mu.Lock()
	p.stops = append(p.stops, s)
	p.mu.Unlock()
	t.Cleanup(func() {
		if !isClosed(s.free) {
			close(s.free)
		}
	})
	return s
}

func (s *stop) await(t *testing.T) {
	t.Helper()
	select {
	case <-s.reached:
	case <-time.After(outputsWithin):
		require.FailNow(t, "the filter did not come to the moment")
	}
}

func (p *stopper) close() {
	_ = p.l.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *stopper) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		broker, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[broker] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.requests(broker, client) })
		p.wg.Go(func() { p.answers(client, broker) })
	}
}

func (p *stopper) answers(client, broker net.Conn) {
	defer client.Close()
	defer broker.Close()
	_, _ = io.Copy(client, broker)
}

// requests copies frames: a size of 4 bytes, API key, version, correlation id
// and client id, the rest.
func (p *stopper) requests(broker, client net.Conn) {
	defer client.Close()
	defer broker.Close()
	in := bufio.NewReader(client)
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(size[:])
		if n < 10 || n > maxFrame {
			return
		}
		frame := make([]byte, 4+n)
		copy(frame, size[:])
		if _, err := io.ReadFull(in, frame[4:]); err != nil {
			return
		}
		if s := p.stopOf(frame[4:]); s != nil {
			s.once.Do(func() { close(s.reached) })
			<-s.free
			// A process that was killed meanwhile has sent this, and its EndTxn
			// would commit what the test takes for aborted.
			if gone(client, in) {
				return
			}
		}
		if _, err := broker.Write(frame); err != nil {
			return
		}
	}
}

// gone tells whether the client has closed its side.
func gone(client net.Conn, in *bufio.Reader) bool {
	_ = client.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err := in.Peek(1)
	_ = client.SetReadDeadline(time.Time{})
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (p *stopper) stopOf(request []byte) *stop {
	key := int16(binary.BigEndian.Uint16(request))
	name := int(int16(binary.BigEndian.Uint16(request[8:])))
	if name < 0 || len(request) < 10+name {
		return nil
	}
	client := string(request[10 : 10+name])
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.stops {
		if s.key == key && strings.HasPrefix(client, s.client) && !isClosed(s.free) {
			return s
		}
	}
	return nil
}
