package crash

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// requests are those over the wire to Kafka that have points.
var requests = []kmsg.Key{
	kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetFetch, kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.Heartbeat,
	kmsg.LeaveGroup, kmsg.SyncGroup, kmsg.InitProducerID, kmsg.OffsetForLeaderEpoch, kmsg.TxnOffsetCommit, kmsg.EndTxn,
}

// outputFetch is a fetch by a learner.
const outputFetch = "Fetch of outputs"

// own reports whether a request is made by a step of the filter's own, so that
// the next call after a point can be it.
func own(key kmsg.Key) bool {
	switch key { //nolint:exhaustive // the others go on by themselves
	case kmsg.Produce, kmsg.ListOffsets, kmsg.OffsetFetch, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.InitProducerID,
		kmsg.OffsetForLeaderEpoch, kmsg.TxnOffsetCommit, kmsg.EndTxn:
		return true
	}
	return false
}

// wire is a process's connection to a broker.
type wire struct {
	net.Conn
	p *process

	mu    sync.Mutex
	asked map[int32]request // by correlation id, until the answer has come

	answer []byte // read whole, handed on piece by piece
}

type request struct {
	name string
	lost bool
}

func (p *process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err //nolint:wrapcheck // as the client's own dialer
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead.Load() {
		return nil, fmt.Errorf("%w: %w", errDead, c.Close())
	}
	p.conns[c] = true
	return &wire{Conn: c, p: p, asked: map[int32]request{}}, nil
}

func (w *wire) Close() error {
	w.p.mu.Lock()
	delete(w.p.conns, w.Conn)
	w.p.mu.Unlock()
	return w.Conn.Close() //nolint:wrapcheck // a net.Conn's errors are its own
}

// cut is a connection that breaks.
func (w *wire) cut() error {
	_ = w.Conn.Close()
	return fmt.Errorf("crash: %w", net.ErrClosed)
}

// Write sends one request, as the client does with each call. Its header: size,
// key, version, correlation id, client id.
func (w *wire) Write(b []byte) (int, error) {
	if w.p.dead.Load() {
		return 0, errDead
	}
	if len(b) < 14 {
		return w.Conn.Write(b) //nolint:wrapcheck // likewise
	}
	key := kmsg.Key(binary.BigEndian.Uint16(b[4:]))
	r := request{name: nameOf(key, b)}
	var follows kind
	if own(key) {
		follows = w.p.following()
	}
	r.lost = follows == lose
	asked := w.p.lane.traps.pass(before + r.name)
	switch {
	case asked == die:
		w.p.kill()
		return 0, errDead
	case asked == fail && w.p.lane.refuse(key):
	case asked == fail || follows == fail:
		return 0, w.cut()
	case asked == hang:
		w.p.stand(r.name)
	case asked == cancel:
		w.p.stop()
	}
	w.mu.Lock()
	w.asked[int32(binary.BigEndian.Uint32(b[8:]))] = r
	w.mu.Unlock()
	return w.Conn.Write(b) //nolint:wrapcheck // likewise
}

func nameOf(key kmsg.Key, b []byte) string {
	if key == kmsg.Fetch {
		if n := int(int16(binary.BigEndian.Uint16(b[12:]))); n > 0 && 14+n <= len(b) && strings.HasSuffix(string(b[14:14+n]), "-learning") {
			return outputFetch
		}
	}
	return key.Name()
}

// Read hands on an answer once it has come whole.
func (w *wire) Read(b []byte) (int, error) {
	if len(w.answer) == 0 {
		if err := w.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, w.answer)
	w.answer = w.answer[n:]
	return n, nil
}

func (w *wire) next() error {
	var size [4]byte
	if _, err := io.ReadFull(w.Conn, size[:]); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	n := binary.BigEndian.Uint32(size[:])
	w.answer = make([]byte, 4+n)
	copy(w.answer, size[:])
	if _, err := io.ReadFull(w.Conn, w.answer[4:]); err != nil {
		w.answer = nil
		return err //nolint:wrapcheck // likewise
	}
	id := int32(binary.BigEndian.Uint32(w.answer[4:]))
	w.mu.Lock()
	r := w.asked[id]
	delete(w.asked, id)
	w.mu.Unlock()
	if err := w.came(r); err != nil {
		w.answer = nil
		return err
	}
	return nil
}

// came is what happens behind a request.
func (w *wire) came(r request) error {
	answered := w.p.lane.traps.pass(r.name + behind)
	switch {
	case answered == die:
		w.p.kill()
		return errDead
	case answered == lose || r.lost:
		return w.cut()
	case answered == hang:
		w.p.stand(r.name)
	case answered == cancel:
		w.p.stop()
	}
	if w.p.dead.Load() {
		return errDead
	}
	return nil
}
