package main

import (
	"context"
	"sync/atomic"
	"time"
)

// feedEvery is how often what is due is produced.
const feedEvery = 10 * time.Millisecond

// feeder goes on producing messages at a fixed rate, whatever becomes of them.
type feeder struct {
	sink *sink
	rate int          // messages a second
	next atomic.Int64 // number of the next message: how many there are
	stop context.CancelFunc
	done chan error
}

// start begins behind the messages that the topic holds.
func (f *feeder) start(ctx context.Context, from int64) {
	f.next.Store(from)
	f.done = make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	f.stop = stop
	go func() { f.done <- f.run(ctx, running) }()
}

func (f *feeder) run(ctx, running context.Context) error {
	t := time.NewTicker(feedEvery)
	defer t.Stop()
	from, began := f.next.Load(), time.Now()
	for {
		select {
		case <-running.Done():
			return f.sink.flush(ctx)
		case <-t.C:
		}
		for n := f.next.Load(); n < from+due(f.rate, time.Since(began)); n++ {
			f.sink.send(ctx, n)
			f.next.Store(n + 1)
		}
	}
}

// due is how many messages a rate makes in a time.
func due(rate int, d time.Duration) int64 { return int64(float64(rate) * d.Seconds()) }

// end waits until all is there.
func (f *feeder) end() error {
	f.stop()
	return <-f.done
}

// sent is how many messages there are.
func (f *feeder) sent() int64 { return f.next.Load() }
