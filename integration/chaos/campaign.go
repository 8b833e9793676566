package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/integration/laws"
)

const (
	// recoverWithin bounds the time until every partition goes on after a fault: a
	// session timeout, a transaction timeout and a rebalance have room in it.
	recoverWithin = 5 * time.Minute
	settleWithin  = 5 * time.Minute
)

// campaign is one run.
type campaign struct {
	o       options
	s       *stage
	crew    *crew
	traffic *traffic
	tail    *tail
	meter   *meter
	out     io.Writer
	rng     *rand.Rand // of faults
	began   time.Time

	mu        sync.Mutex
	done      []inflicted
	mixed     bool // the fault before was not waited out
	noted     string
	watch     *watch  // of the fault in hand; nil: none yet
	unsettled []error // found before the filters were stopped
	gaps      int     // faults that leave records without an output
	losses    int     // faults after which PostgreSQL lacked commits
	turns     map[string]int
	saved     []*kgo.Record        // outputs that were deleted since
	ids       map[string]uuid.UUID // of raw topics that are no more, by the names of their generations
	destroyed []destroyed
	unread    int // records of those that nobody had read
}

// inflicted is a fault that was done.
type inflicted struct {
	kind      string
	recovered time.Duration // -1: the next came before
	raw       time.Duration // likewise, until raw itself went on: no filter can be earlier
	silent    time.Duration // the longest time without any output
	alone     bool          // the one before was over
}

// conduct runs a campaign and prints its table. The error says which law broke.
func conduct(ctx context.Context, o options, out io.Writer) (err error) {
	fmt.Fprintf(out, "seed %d\n", o.seed)
	defer fmt.Fprintf(out, "seed %d\n", o.seed)
	began := time.Now()
	s, err := raise(ctx, o, out)
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return err
	}
	c := &campaign{o: o, s: s, out: out, rng: rand.New(rand.NewPCG(o.seed, 0)), traffic: newTraffic(s, o.seed), crew: &crew{s: s}, began: time.Now(), ids: map[string]uuid.UUID{}}
	fmt.Fprintf(out, "services up after %s: three brokers %s, Redis %s, PostgreSQL %s with standby %s\n", time.Since(began).Round(time.Second),
		strings.Join(s.kafka.Addrs(), " "), c.redisName(), s.primary.Addr(), s.standby.Addr())
	if c.tail, err = newTail(s); err != nil {
		return err
	}
	defer c.tail.client.Close()
	c.meter = newMeter(c.crew)
	err = c.run(ctx)
	if err != nil {
		c.crew.tell(out)
	}
	return errors.Join(err, c.crew.close())
}

func (c *campaign) redisName() string {
	if c.o.cluster {
		return "Cluster"
	}
	return "with Sentinel"
}

// run does the faults beside the traffic, lets everything settle and judges.
func (c *campaign) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var side sync.WaitGroup
	aside := func(ctx context.Context, what func(context.Context) error) chan struct{} {
		done := make(chan struct{})
		side.Go(func() {
			defer close(done)
			if err := what(ctx); err != nil {
				cancel(err)
			}
		})
		return done
	}
	aside(ctx, c.tail.run)
	aside(ctx, c.meter.run)
	aside(ctx, c.progress)
	for way := range 2 {
		if err := c.crew.start(way); err != nil {
			return err
		}
	}
	sent := aside(sending, c.traffic.run)
	err := c.faults(ctx)
	stop()
	<-sent
	if err == nil {
		err = c.settle(ctx)
	}
	cause := context.Cause(ctx)
	if err == nil {
		err = c.judge(ctx)
	} else {
		c.report(nil)
	}
	cancel(nil)
	side.Wait()
	if errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// faults draws from a bag of all kinds, and fills it again when it is empty.
func (c *campaign) faults(ctx context.Context) error {
	if _, err := c.recover(ctx, c.tail.mark()); err != nil {
		return fmt.Errorf("before the first fault: %w", err)
	}
	c.say("all partitions are filtered; faults for %s", c.o.lasts)
	begin := time.Now()
	end := begin.Add(c.o.lasts)
	after, spares := c.o.sparesAfter()
	defer c.crew.spareNone()
	var bag []kind
	for n := 1; time.Now().Before(end); {
		if spares && !c.crew.sparing() && time.Since(begin) >= after {
			c.say("from now on the filter by way %d is spared: no fault ends it", c.crew.spare())
		}
		if len(bag) == 0 {
			bag = c.bag()
		}
		k := bag[0]
		bag = bag[1:]
		if k.ends && c.crew.sparing() {
			continue
		}
		err := c.inflict(ctx, n, k, rand.New(rand.NewPCG(c.o.seed, uint64(n)<<8)))
		if err != nil && ctx.Err() == nil {
			return c.endEarly(err)
		}
		if err != nil {
			return err
		}
		n++
	}
	return nil
}

// sparesAfter is when a filter begins to be spared: at once, where no kind ends
// all filters, or at half time, when those kinds have had their turn. It is not
// spared at all where that leaves less than flatFrom.
func (o options) sparesAfter() (after time.Duration, spares bool) {
	ends, others := false, false
	for _, k := range o.kinds() {
		ends, others = ends || k.ends, others || !k.ends
	}
	if ends {
		after = o.lasts / 2
	}
	return after, others && o.lasts-after >= flatFrom
}

// endEarly ends the faults with one that went wrong; what was sent is judged all
// the same.
func (c *campaign) endEarly(err error) error {
	c.say("no more faults: %v", err)
	c.unsettled = append(c.unsettled, err)
	if len(c.crew.running()) > 0 {
		return nil
	}
	return errors.Join(c.crew.start(0), c.crew.start(1))
}

// kinds are those that the campaign inflicts.
func (o options) kinds() (all []kind) {
	for _, k := range kinds() {
		if len(o.only) > 0 && !slices.Contains(o.only, k.name) || k.sentinel && o.cluster {
			continue
		}
		all = append(all, k)
	}
	return all
}

func (c *campaign) bag() []kind {
	bag := c.o.kinds()
	c.rng.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
	return bag
}

// inflict does one fault and waits until all partitions go on; now and then the
// next one comes before.
func (c *campaign) inflict(ctx context.Context, n int, k kind, rng *rand.Rand) error {
	if err := hold(ctx, between(rng, 500*time.Millisecond, 2*time.Second)); err != nil {
		return err
	}
	c.note("")
	c.watch = nil
	if k.loses {
		c.losses++
	}
	c.tail.silence()
	began := time.Now()
	since, err := k.do(ctx, c, rng)
	if err != nil {
		return fmt.Errorf("fault %d, %s (%s): %w", n, k.name, c.noted, err)
	}
	f := inflicted{kind: k.name, recovered: -1, raw: -1, alone: !c.mixed}
	if rng.IntN(4) > 0 || k.loses || k.waits || c.o.apart {
		if c.watch == nil {
			c.watchFrom(ctx, since)
		}
		w := <-c.watch.done
		if w.err != nil {
			return fmt.Errorf("after fault %d, %s (%s): %w", n, k.name, c.noted, w.err)
		}
		f.recovered, f.raw = w.at.Sub(c.watch.since), w.raw.Sub(c.watch.since)
	}
	f.silent = c.tail.silence()
	c.mixed = f.recovered < 0
	c.mu.Lock()
	c.done = append(c.done, f)
	c.mu.Unlock()
	after := "the next follows at once"
	if f.recovered >= 0 {
		after = fmt.Sprintf("goes on after %s, raw itself after %s", f.recovered.Round(10*time.Millisecond), f.raw.Round(10*time.Millisecond))
	}
	c.say("%3d %-12s %-44s took %5s, %s", n, k.name, c.noted, time.Since(began).Round(100*time.Millisecond), after)
	return nil
}

// recover waits until every raw partition has the output of a record behind the
// mark, and says since when a reader could have read one there.
func (c *campaign) recover(ctx context.Context, mark places) (raw time.Time, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverWithin, fmt.Errorf("not every partition goes on within %s", recoverWithin))
	defer cancel()
	if err := c.tail.awaitSent(ctx, mark); err != nil {
		return raw, err
	}
	raw = time.Now()
	return raw, c.tail.awaitPassed(ctx, mark)
}

// watch is a wait for all partitions to go on, beside the rest of a fault.
type watch struct {
	since time.Time
	done  chan watched // gets one
}

func (w *watch) over() bool { return len(w.done) > 0 }

type watched struct {
	at, raw time.Time
	err     error
}

// watchFrom begins to wait now: what a fault still has to tidy up, a new standby
// or replicas that come in sync, is no part of the recovery.
func (c *campaign) watchFrom(ctx context.Context, since time.Time) {
	w := &watch{since: since, done: make(chan watched, 1)}
	mark := c.tail.mark()
	c.watch = w
	go func() {
		raw, err := c.recover(ctx, mark)
		w.done <- watched{time.Now(), raw, err}
	}()
}

// settle waits until all is handled, and stops the filters cleanly.
func (c *campaign) settle(ctx context.Context) error {
	c.say("traffic ended; waiting for the rest of the outputs")
	within, cancel := context.WithTimeoutCause(ctx, settleWithin, fmt.Errorf("not settled within %s", settleWithin))
	defer cancel()
	// A transaction that its sender left open is aborted by its timeout.
	if err := c.stable(within); err != nil {
		return err
	}
	var names []string
	for _, name := range c.s.raw {
		names = append(names, c.tail.gens.names(name)...)
	}
	late := c.awaitHandled(within, names...)
	if err := errors.Join(late, c.doctor(ctx)); err != nil {
		c.unsettled = append(c.unsettled, err)
	}
	for _, way := range c.crew.running() {
		if err := c.crew.term(ctx, way); err != nil {
			return errors.Join(late, err)
		}
	}
	if late != nil {
		c.say("judging although %v", late)
	}
	return nil
}

// awaitHandled waits until every raw record of these topics, by the names of their
// generations, has an output or lies in a gap.
func (c *campaign) awaitHandled(ctx context.Context, names ...string) error {
	left := 0
	err := until(ctx, func() (bool, error) {
		o := laws.NewObservation()
		for p, epoch := range c.tail.without() {
			if slices.Contains(names, p.Topic) {
				o.Sent[p], o.Epochs[p] = &laws.Sent{Place: p}, epoch
			}
		}
		left = len(o.Sent)
		if left == 0 || c.gaps == 0 {
			return left == 0, nil
		}
		db, err := c.s.asAdmin(ctx)
		if err != nil {
			return false, err
		}
		defer db.Close(context.WithoutCancel(ctx))
		if err := c.readGaps(ctx, o, db); err != nil {
			return false, err
		}
		left -= len(o.Gone)
		return left == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %d raw records have no output", err, left)
	}
	return nil
}

// doctor looks while the filters run, and must find nothing.
func (c *campaign) doctor(ctx context.Context) error {
	said, err := c.s.command(ctx, nil, "doctor", "--deep")
	bad := ailments(said, c.losses > 0)
	c.say("dedup doctor --deep: %d lines, %d of them bad", strings.Count(said, "\n"), len(bad))
	switch {
	case len(bad) > 0:
		return fmt.Errorf("dedup doctor --deep finds: %s", strings.Join(bad, "; "))
	case !strings.Contains(said, "ok    deep ") && !strings.Contains(said, "FAIL  deep "):
		return fmt.Errorf("dedup doctor --deep did not look: %w\n%s", err, said)
	}
	return nil
}

// ailments are what the doctor finds that must not be. After PostgreSQL has lost
// commits keys can have been accepted twice, which it rightly tells.
func ailments(said string, lost bool) (bad []string) {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "FAIL ") && (!lost || !strings.Contains(line, " accepted twice")) {
			bad = append(bad, line)
		}
	}
	return bad
}

// stable waits until the reader has seen all that is committed to raw.
func (c *campaign) stable(ctx context.Context) error {
	last, quiet := -1, 0
	return until(ctx, func() (bool, error) {
		ends, err := c.s.admin.ListEndOffsets(ctx, c.s.raw...)
		stable, err2 := c.s.admin.ListCommittedOffsets(ctx, c.s.raw...)
		if err := errors.Join(err, err2); err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		open := 0
		for _, name := range c.s.raw {
			for p := range c.s.width(name) {
				end, _ := ends.Lookup(name, int32(p))
				at, _ := stable.Lookup(name, int32(p))
				if end.Err != nil || at.Err != nil || at.Offset < end.Offset {
					open++
				}
			}
		}
		sent, _ := c.tail.counts()
		if open > 0 || sent != last {
			last, quiet = sent, 0
			return false, nil
		}
		quiet++
		return quiet >= 10, nil
	})
}

func (c *campaign) progress(ctx context.Context) error {
	every := time.NewTicker(15 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			sent, done := c.tail.counts()
			c.say("    %d raw records, %d with an output, filters by ways %v", sent, done, c.crew.running())
		}
	}
}

// note says the particulars of the fault in hand.
func (c *campaign) note(format string, args ...any) { c.noted = fmt.Sprintf(format, args...) }

func (c *campaign) say(format string, args ...any) {
	at := time.Since(c.began).Round(time.Second)
	fmt.Fprintf(c.out, "%02d:%02d %s\n", int(at.Minutes()), int(at.Seconds())%60, fmt.Sprintf(format, args...))
}
