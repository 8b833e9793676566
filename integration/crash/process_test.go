package crash

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/processor"
)

// transactionTimeout is longer than a lane's patience: what a process leaves open
// must be ended by its successor.
const transactionTimeout = 10 * time.Minute

const (
	stallExit = 15 * time.Second      // of the watchdog; a round of the loop takes seconds on a busy machine
	moment    = 40 * time.Millisecond // at most, that a call takes longer
)

// errDead is what a process hears that has ended.
var errDead = errors.New("crash: the process is dead")

// process is one life of a filter: as many sessions as it likes, all that it
// reaches goes through here, and it can be killed at any point.
//
// Killed means: from this moment nothing of it has an effect. Its connections are
// cut, its clients closed without a word to the broker, the ledger hears nothing
// more, and its own goroutines end at the point where they are. What goroutines
// of the Kafka client do meanwhile reaches nobody.
type process struct {
	lane  *lane
	slot  int
	dead  atomic.Bool
	stop  context.CancelFunc
	over  chan struct{} // closed when Run has returned
	err   error         // of Run, once over is closed
	next  atomic.Int32  // kind that happens to the next call
	opens atomic.Int32  // clients opened: rebuilds and one
	leave chan struct{}
	once  sync.Once
	tiers *ledger.Tiers

	mu      sync.Mutex
	conns   map[net.Conn]bool
	clients []*kgo.Client
}

// start begins a life.
func (l *lane) start(slot int) *process {
	ctx, stop := context.WithCancel(l.ctx)
	l.world.table.born()
	p := &process{
		lane: l, slot: slot, stop: stop, over: make(chan struct{}), leave: make(chan struct{}),
		conns: map[net.Conn]bool{},
	}
	led := &callee{p}
	p.tiers = ledger.NewTiers(ledger.TiersConfig{Cold: led, Hot: led, Log: l.log})
	cfg := processor.Config{
		Brokers: l.cluster.ListenAddrs(), Group: group, Slot: slot, Sessions: 1, Static: true, Leaving: p.leave,
		Rebalance: 4 * time.Second, Transaction: transactionTimeout, Session: 10 * time.Second,
		FetchMax: 16 << 20, Compression: "none", MaxRecord: maxRecord, PayloadCopies: 1000, BatchRecords: 40, ChunkRecords: chunkRecords,
		BatchWait: 2 * time.Millisecond, StallExit: stallExit, ShutdownGrace: time.Duration(l.rng.IntN(2)) * 2 * time.Second,
		Router: l.router, Keyer: keyer{},
		Ledger:   processor.Ledger{ID: l.world.cold.ID(), Registrar: registrar{p.tiers, led}, Positions: led, Memory: p.tiers},
		Log:      l.log.With("process", slot),
		Registry: prometheus.NewRegistry(),
		ClientOptions: []kgo.Opt{
			kgo.Dialer(p.dial), kgo.WithHooks(p), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.FetchMaxWait(100 * time.Millisecond),
			kgo.MetadataMinAge(20 * time.Millisecond), kgo.MetadataMaxAge(5 * time.Second),
			kgo.RetryBackoffFn(func(tries int) time.Duration { return min(5*time.Millisecond<<min(tries, 10), 500*time.Millisecond) }),
		},
	}
	if !attach(&cfg, p.step) {
		l.report(errors.New("this program has no fault points: build it with -tags " + tag))
	}
	go func() {
		defer close(p.over)
		p.err = processor.New(cfg).Run(ctx)
	}()
	return p
}

// OnNewClient keeps the clients, to close them. Another goroutine may have killed
// the process while this one was making its client: nobody looks through them again.
func (p *process) OnNewClient(cl *kgo.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = append(p.clients, cl)
	if p.dead.Load() {
		go cl.CloseAllowingRebalance()
	}
}

// kill ends the process.
func (p *process) kill() {
	p.once.Do(func() {
		p.dead.Store(true)
		p.stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		for c := range p.conns {
			_ = c.Close()
		}
		for _, cl := range p.clients {
			go cl.CloseAllowingRebalance()
		}
		go func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = p.tiers.Close(ctx)
		}()
	})
}

// alive ends the goroutine of a process that is dead.
func (p *process) alive() {
	if p.dead.Load() {
		runtime.Goexit()
	}
}

// step is asked at each point between two steps.
func (p *process) step(point string) {
	told := strings.HasPrefix(point, "told ") // from a goroutine of the client's
	if !told {
		p.alive()
	}
	if point == "client made" {
		p.opens.Add(1)
	}
	switch k := p.lane.traps.pass(point); k {
	case die:
		p.kill()
		if !told {
			runtime.Goexit()
		}
	case fail, lose:
		p.next.Store(int32(k))
	case hang:
		p.stand(point)
		if !told {
			p.alive()
		}
	case cancel:
		p.stop()
	}
}

// stand takes a moment, or one time in so many until the watchdog has ended the
// process.
func (p *process) stand(string) {
	wait := p.lane.duration(moment)
	if p.lane.chance(150) {
		wait = 2 * stallExit // the watchdog looks at open sessions only, and not at a stop
	}
	select {
	case <-time.After(wait):
	case <-p.over:
	}
}

// following is what was to happen to the next call.
func (p *process) following() kind { return kind(p.next.Swap(0)) }
