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
	lanes       = 12
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
	c := &campaign{w: w, out: os.Stdout, all: places(t), want: visits, seed: seed}
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
	for n := range lanes {
		wg.Go(func() {
			if err := c.lane(ctx, n, todo); err != nil {
				c.w.report(fmt.Errorf("lane %d: %w", n, err))
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
// where it is not. The former make no topics, nothing is deleted there that
// PostgreSQL would have to learn, and no dead letter is a reference: it does not
// tell how long its payload was, so the bytes of dedup_hour cannot be learned.
const (
	anywhere = iota
	whereLearned
	whereOpened

	ahead = 1000
)

// deal hands out rounds until there were enough visits, all places in turn.
func (c *campaign) deal(ctx context.Context, todo [3]chan round) {
	for _, t := range todo {
		defer close(t)
	}
	rng := rand.New(rand.NewPCG(c.seed, 0))
	for {
		for _, r := range rounds(c.all, rng) {
			if c.w.table.total() >= c.want {
				return
			}
			to := todo[anywhere]
			switch {
			case r.occasion == onLearning || r.occasion == atHold:
				to = todo[whereLearned]
			case r.occasion == atOpening || r.occasion == atGap || r.shape == reference:
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

// lane does rounds until there are none.
func (c *campaign) lane(ctx context.Context, n int, todo [3]chan round) error {
	l, err := c.w.lane(ctx, n, c.seed)
	if err != nil {
		return err
	}
	defer l.close()
	common, own := todo[anywhere], todo[whereOpened]
	if l.learns {
		own = todo[whereLearned]
	}
	for (common != nil || own != nil) && c.w.table.total() < c.want {
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
