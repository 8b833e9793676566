package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dedupledger/internal/devservices"
)

// crew are the filters of a campaign: one for each way at most. A filter that ends
// by itself is started again, as a platform would.
type crew struct {
	s  *stage
	wg sync.WaitGroup

	mu      sync.Mutex
	filters [ways]*filter // nil: none by this way
	ended   []string      // why filters ended by themselves
	starts  int
	spared  *int // the way that nothing ends; nil: none
}

// filter is one process of the program.
type filter struct {
	way   int
	child *devservices.Child
	log   string
	at    string // host:port of its HTTP
	asked bool   // to end, by us
	began time.Time
}

// start runs a filter by a way that is free.
func (c *crew) start(way int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.launch(way)
}

func (c *crew) launch(way int) error {
	port, err := devservices.FreePort()
	if err != nil {
		return fmt.Errorf("taking a port for a filter: %w", err)
	}
	c.starts++
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	var at []string
	for n := range c.s.kafkaLinks {
		at = append(at, c.s.kafkaLinks[n][way].addr)
	}
	env := []string{
		"DEDUP_HTTP_LISTEN=" + listen, "DEDUP_KAFKA_BROKERS=" + strings.Join(at, ","),
		"DEDUP_POSTGRES_URL=" + c.s.url("dedup_app", c.s.pgLinks[way].addr),
	}
	if c.s.doors[way] != nil {
		env = append(env, "DEDUP_REDIS_ADDRS="+c.s.redisLinks[way][0].addr)
	}
	if c.s.o.fixedSlots() {
		env = append(env, fmt.Sprintf("DEDUP_PROCESSOR_SLOT=%d", way))
	}
	f := &filter{way: way, log: filepath.Join(c.s.dir, fmt.Sprintf("filter-%03d-way%d.log", c.starts, way)), at: listen, began: time.Now()}
	if f.child, err = devservices.StartChildIn(environment(env), c.s.program, []string{"run", "-c", c.s.config()}, f.log); err != nil {
		return fmt.Errorf("starting a filter: %w", err)
	}
	c.filters[way] = f
	c.wg.Go(func() { c.watch(f) })
	return nil
}

// watch starts a filter again that ended without being asked.
func (c *crew) watch(f *filter) {
	<-f.child.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.asked || c.filters[f.way] != f {
		return
	}
	c.ended = append(c.ended, fmt.Sprintf("exit code %d after %s: %s", f.child.ExitCode(), time.Since(f.began).Round(time.Second), lastLine(f.child.Log())))
	c.filters[f.way] = nil
	if err := c.launch(f.way); err != nil {
		c.ended = append(c.ended, err.Error())
	}
}

func lastLine(log string) string {
	return log[strings.LastIndexByte(log, '\n')+1:]
}

// running are the ways in use.
func (c *crew) running() (ways []int) {
	for _, f := range c.all() {
		ways = append(ways, f.way)
	}
	return ways
}

// all are the filters that run.
func (c *crew) all() (all []*filter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.filters {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

// spare the filter that has lived longest: nothing may end it until it is spared no
// more.
func (c *crew) spare() (way int) {
	oldest := slices.MinFunc(c.all(), func(a, b *filter) int { return a.began.Compare(b.began) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spared = new(oldest.way)
	return oldest.way
}

func (c *crew) spareNone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spared = nil
}

func (c *crew) isSpared(way int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spared != nil && *c.spared == way
}

func (c *crew) sparing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spared != nil
}

// victims are the ways in use by filters that may be ended.
func (c *crew) victims() []int {
	return slices.DeleteFunc(c.running(), c.isSpared)
}

// take is the filter of a way, which from now on may end.
func (c *crew) take(way int, ends bool) (*filter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.filters[way]
	if f == nil {
		return nil, fmt.Errorf("no filter runs by way %d", way)
	}
	if ends && c.spared != nil && *c.spared == way {
		return nil, fmt.Errorf("the filter by way %d is spared, and this fault would end it", way)
	}
	if ends {
		f.asked = true
		c.filters[way] = nil
	}
	return f, nil
}

// kill ends a filter with SIGKILL.
func (c *crew) kill(way int) error {
	f, err := c.take(way, true)
	if err != nil {
		return err
	}
	return f.child.Kill()
}

// term ends a filter with SIGTERM; any other exit code than 0 is a fault of the
// product, where its services answer.
func (c *crew) term(ctx context.Context, way int) error {
	f, err := c.take(way, true)
	if err != nil {
		return err
	}
	if err := f.child.Stop(ctx); err != nil {
		return fmt.Errorf("stopping a filter: %w", err)
	}
	if code := f.child.ExitCode(); code != 0 {
		return fmt.Errorf("a filter ended with %d after SIGTERM; end of its log:\n%s", code, f.child.Log())
	}
	return nil
}

// killAll ends them all.
func (c *crew) killAll() error {
	for _, way := range c.running() {
		if err := c.kill(way); err != nil {
			return err
		}
	}
	return nil
}

// endAll ends them all, and says which ways they had.
func (c *crew) endAll(ctx context.Context, killed bool) (all []int, err error) {
	all = c.running()
	if killed {
		return all, c.killAll()
	}
	for _, way := range all {
		if err := c.term(ctx, way); err != nil {
			return all, err
		}
	}
	return all, nil
}

// startAll starts them by these ways.
func (c *crew) startAll(all []int) (err error) {
	for _, way := range all {
		err = errors.Join(err, c.start(way))
	}
	return err
}

// close ends what runs and waits for the watchers.
func (c *crew) close() error {
	c.spareNone()
	err := c.killAll()
	c.wg.Wait()
	return err
}

// tell is the end of every log, for a campaign that failed.
func (c *crew) tell(out io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.filters {
		if f == nil {
			continue
		}
		text, err := os.ReadFile(f.log)
		if err != nil {
			continue
		}
		fmt.Fprintf(out, "end of %s:\n%s\n", f.log, text[max(0, len(text)-8<<10):])
	}
}
