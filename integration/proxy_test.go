package integration

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"dedupledger/integration/laws"
	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	endTxnKey = 26
	// endTxnFlexible is the first version of EndTxn with tagged fields.
	endTxnFlexible = 3
	maxFrame       = 128 << 20
)

// liar stands between clients and a broker and answers commits of transactions
// with UNKNOWN_SERVER_ERROR after the broker has carried them out.
type liar struct {
	l      net.Listener
	prefix string // of the transactional ids lied to
	told   chan string

	mu     sync.Mutex
	target string
	lies   int // left to tell
	conns  map[net.Conn]bool
	wg     sync.WaitGroup
}

// startLiar starts a Kafka broker of its own whose advertised address is the
// proxy's: clients follow the address a broker advertises, so a proxy in front
// of another broker would see their first request only.
func startLiar(t *testing.T, prefix string) *liar {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &liar{l: l, prefix: prefix, told: make(chan string, 100), conns: map[net.Conn]bool{}}
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

// addr is what clients connect to.
func (p *liar) addr() string { return p.l.Addr().String() }

// lie makes the next n commits be answered with a lie.
func (p *liar) lie(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lies = n
}

// awaitLie returns the transactional id of the next commit lied about.
func (p *liar) awaitLie(t *testing.T) string {
	t.Helper()
	select {
	case id := <-p.told:
		return id
	case <-time.After(outputsWithin):
		require.FailNow(t, "no transaction was committed through the proxy")
		return ""
	}
}

func (p *liar) close() {
	_ = p.l.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *liar) accept() {
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
		c := &lieConn{liar: p, asked: map[int32]request{}}
		p.wg.Go(func() { c.pump(broker, client, c.request) })
		p.wg.Go(func() { c.pump(client, broker, c.response) })
	}
}

// request is a commit on its way.
type request struct {
	version int16
	id      string // transactional
}

// lieConn is one connection through the proxy.
type lieConn struct {
	liar  *liar
	mu    sync.Mutex
	asked map[int32]request // correlation id -> commit
}

// pump copies frames (a size of 4 bytes, then so many) until either end closes,
// then closes both.
func (c *lieConn) pump(to, from net.Conn, look func(frame []byte) error) {
	defer to.Close()
	defer from.Close()
	for {
		var size [4]byte
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(size[:])
		if n > maxFrame {
			return
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		if err := look(frame); err != nil {
			return
		}
		if _, err := to.Write(append(size[:], frame...)); err != nil {
			return
		}
	}
}

// request notes commits: api key, api version, correlation id, client id, in
// flexible versions tagged fields, then the body.
func (c *lieConn) request(frame []byte) error {
	if len(frame) < 10 || binary.BigEndian.Uint16(frame) != endTxnKey {
		return nil
	}
	version := int16(binary.BigEndian.Uint16(frame[2:]))
	correlation := int32(binary.BigEndian.Uint32(frame[4:]))
	body := frame[10:]
	if n := int16(binary.BigEndian.Uint16(frame[8:])); n > 0 {
		body = body[n:]
	}
	if version >= endTxnFlexible {
		if body[0] != 0 {
			return errors.New("EndTxn request with tagged header fields")
		}
		body = body[1:]
	}
	r := kmsg.NewPtrEndTxnRequest()
	r.SetVersion(version)
	if err := r.ReadFrom(body); err != nil {
		return fmt.Errorf("reading an EndTxn request: %w", err)
	}
	if r.Commit && strings.HasPrefix(r.TransactionalID, c.liar.prefix) {
		c.mu.Lock()
		c.asked[correlation] = request{version, r.TransactionalID}
		c.mu.Unlock()
	}
	return nil
}

// response lies about commits that were carried out: correlation id, in
// flexible versions tagged fields, throttle time (4 bytes), error code.
func (c *lieConn) response(frame []byte) error {
	if len(frame) < 4 {
		return nil
	}
	correlation := int32(binary.BigEndian.Uint32(frame))
	c.mu.Lock()
	asked, ok := c.asked[correlation]
	delete(c.asked, correlation)
	c.mu.Unlock()
	if !ok {
		return nil
	}
	at := 8
	if asked.version >= endTxnFlexible {
		at++
	}
	if binary.BigEndian.Uint16(frame[at:]) == 0 && c.liar.take() {
		unknown := kerr.UnknownServerError.Code
		binary.BigEndian.PutUint16(frame[at:], uint16(unknown))
		c.liar.told <- asked.id
	}
	return nil
}

func (p *liar) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lies == 0 {
		return false
	}
	p.lies--
	return true
}

// TestLiar shows the harm on a plain producer: the answer is an error, the
// record is committed.
func TestLiar(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := startLiar(t, "lied-to")
	admin, err := kgo.NewClient(kgo.SeedBrokers(p.addr()))
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	adm := kadm.NewClient(admin)
	_, err = adm.CreateTopic(ctx, 1, 1, nil, "out")
	require.NoError(t, err)

	c, err := kgo.NewClient(kgo.SeedBrokers(p.addr()), kgo.TransactionalID("lied-to"), kgo.DefaultProduceTopic("out"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p.lie(1)
	require.NoError(t, c.BeginTransaction())
	require.NoError(t, c.ProduceSync(ctx, kgo.StringRecord("a")).FirstErr())
	require.ErrorIs(t, c.EndTransaction(ctx, kgo.TryCommit), kerr.UnknownServerError)
	require.Equal(t, "lied-to", p.awaitLie(t))

	records, err := laws.ReadCommitted(ctx, []string{p.addr()}, adm, "out")
	require.NoError(t, err)
	require.Len(t, records, 1)
}
