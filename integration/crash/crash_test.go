package crash

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/processor"
)

// The slice that runs with all tests; make crash asks for more by CRASH_VISITS
// and CRASH_SEED.
const (
	sliceVisits = 200
	sliceSeed   = 1
	maxLanes    = 32

	// A lane is judged as a whole and followed by another after so many rounds, or
	// raw topics: what it learns, and claims at each start, grows.
	laneRounds = 30
	laneTopics = 8
)

// TestCrashAtEveryStep breaks the filter at every point in every way, with every
// kind of batch in hand, and requires after each visit that every raw record has
// exactly one output, that no key is in clean twice, and that the accounts in
// PostgreSQL are what the outputs tell.
func TestCrashAtEveryStep(t *testing.T) {
	if !attach(&processor.Config{}, nil) {
		underTag(t)
		return
	}
	visits, seed := sliceVisits, uint64(sliceSeed)
	if s := os.Getenv("CRASH_VISITS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err, "CRASH_VISITS")
		visits = n
	}
	if s := os.Getenv("CRASH_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "CRASH_SEED")
		seed = n
	}
	w := newWorld(t)
	c := &campaign{w: w, out: os.Stdout, all: places(t), want: visits, seed: seed, lanes: min(maxLanes, 4+visits/20)}
	c.run(t)
}

// underTag runs the test as it is built with the points.
func underTag(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", tag, "-count=1", "-v", "-run", "^"+t.Name()+"$", ".")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	require.NoError(t, cmd.Run())
}

// campaign is one run: the places, in an order that the seed tells, over lanes.
type campaign struct {
	w    *world
	out  io.Writer
	all  []visit
	want int
	seed uint64

	lanes int // beside each other
}

func (c *campaign) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	began := time.Now()
	fmt.Fprintf(c.out, "seed %d, %d visits of %d places (point, kind and batch)\n", c.seed, c.want, len(c.all))
	// With room, so that the lanes of one sort do not wait for those of another.
	todo := [3]chan round{make(chan round, ahead), make(chan round, ahead), make(chan round, ahead)}
	go c.deal(ctx, todo)
	var wg sync.WaitGroup
	for n := range c.lanes {
		wg.Go(func() {
			if err := c.follow(ctx, n, todo); err != nil {
				c.w.report(err)
			}
		})
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	c.progress(over, began, cancel)
	c.w.table.write(c.out, c.all)
	wrong := c.w.wrong()
	n, took := c.w.table.total(), time.Since(began)
	fmt.Fprintf(c.out, "%d visits in %s, %d of %d places, %d lives, %d lost, %d doubled, %d wrong (seed %d)\n",
		n, took.Round(time.Second), len(c.w.table.combos), len(c.all), c.w.table.lives, count(wrong, "lost: "), count(wrong, "doubled: "),
		len(wrong)-count(wrong, "lost: ")-count(wrong, "doubled: "), c.seed)
	for _, err := range wrong[:min(len(wrong), 20)] {
		t.Error(err)
	}
	if len(wrong) > 0 {
		return
	}
	require.GreaterOrEqual(t, n, c.want)
	if c.want >= len(c.all) {
		require.Empty(t, c.w.table.unmet(c.all), "never visited")
	}
}

func count(errs []error, what string) (n int) {
	for _, err := range errs {
		if strings.Contains(err.Error(), what) {
			n++
		}
	}
	return n
}

// Rounds are for any lane, for those where PostgreSQL is put back, and for those
// where it is not. The former make no topics, and nothing is deleted there that
// PostgreSQL would have to learn.
const (
	anywhere = iota
	whereLearned
	whereOpened

	ahead = 1000
)

// deal hands out rounds until there were enough visits: each point once, then all
// places in turn.
func (c *campaign) deal(ctx context.Context, todo [3]chan round) {
	for _, t := range todo {
		defer close(t)
	}
	rng := rand.New(rand.NewPCG(c.seed, 0))
	for some := oneOfEach(c.all, rng); ; some = c.all {
		for _, r := range rounds(some, rng) {
			if c.w.table.total() >= c.want {
				return
			}
			to := todo[anywhere]
			switch r.occasion { //nolint:exhaustive // the others are for any lane
			case onLearning, atHold:
				to = todo[whereLearned]
			case atOpening, atGap:
				to = todo[whereOpened]
			}
			select {
			case to <- r:
			case <-ctx.Done():
				return
			}
		}
	}
}

// follow does rounds in one lane after the other until there are none.
func (c *campaign) follow(ctx context.Context, n int, todo [3]chan round) error {
	learns := n%3 == 2
	for ; c.w.table.total() < c.want && ctx.Err() == nil; n += c.lanes {
		if err := c.lane(ctx, n, learns, todo); err != nil {
			return fmt.Errorf("lane %d: %w", n, err)
		}
	}
	return nil
}

func (c *campaign) lane(ctx context.Context, n int, learns bool, todo [3]chan round) error {
	l, err := c.w.lane(ctx, n, c.seed, learns)
	if err != nil {
		return err
	}
	defer l.close()
	common, own := todo[anywhere], todo[whereOpened]
	if l.learns {
		own = todo[whereLearned]
	}
	for done := 0; (common != nil || own != nil) && c.w.table.total() < c.want && done < laneRounds && len(l.raws) < laneTopics; done++ {
		var r round
		var ok bool
		select {
		case r, ok = <-common:
			if !ok {
				common = nil
			}
		case r, ok = <-own:
			if !ok {
				own = nil
			}
		case <-ctx.Done():
			return nil
		}
		if !ok {
			continue
		}
		if err := l.visit(r); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return l.last()
}

// last stops the filter in order and judges all that the lane has.
func (l *lane) last() error {
	if err := l.settle("the end"); err != nil {
		return err
	}
	l.cur.stop()
	l.gone(l.cur)
	l.read(l.ctx, 100*time.Millisecond)
	for _, err := range l.books.repeats() {
		l.report(err)
	}
	if err := l.auditRows(l.ctx); err != nil {
		return err
	}
	return l.audit(l.ctx)
}

// progress tells how it goes. A fault ends the run.
func (c *campaign) progress(over <-chan struct{}, began time.Time, end func()) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		wrong := len(c.w.wrong())
		if wrong > 0 {
			end()
		}
		if n%10 == 0 {
			fmt.Fprintf(c.out, "%4.0f s: %d visits, %d faults\n", time.Since(began).Seconds(), c.w.table.total(), wrong)
		}
	}
}
