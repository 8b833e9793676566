package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
)

// pinnedEvery is how often the raw partitions are looked at. Two looks tell a
// transaction that was open for a moment from one that stays.
const pinnedEvery = 5 * time.Second

// rawPartition is topic and partition.
type rawPartition struct {
	topic  string
	number int32
}

func (p rawPartition) String() string { return p.topic + "/" + strconv.Itoa(int(p.number)) }

// parsePartition reads topic/partition, as processor.Status has it.
func parsePartition(s string) (rawPartition, error) {
	i := strings.LastIndexByte(s, '/')
	n, err := strconv.ParseInt(s[i+1:], 10, 32)
	if err != nil || i < 0 {
		return rawPartition{}, fmt.Errorf("%q is no topic/partition", s)
	}
	return rawPartition{s[:i], int32(n)}, nil
}

// stable is where the last stable offset of a partition has stayed, although
// records lie behind it.
type stable struct {
	offset int64
	behind int64 // records and markers from there to the end
	since  time.Time
}

// pinned knows the raw partitions of this process whose last stable offset does
// not move: a transaction of a producer is open there, and a read_committed
// consumer gets nothing that lies behind its first record. Neither lag nor the age
// of the oldest record tells of it, for nothing is fetched.
type pinned struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu sync.Mutex
	at map[rawPartition]stable
}

func newPinned() *pinned {
	return &pinned{
		desc: prometheus.NewDesc("dedup_pinned_seconds",
			"Since when an open transaction keeps the records behind it from being read.", []string{"topic", "partition"}, nil),
		now: time.Now, at: map[rawPartition]stable{},
	}
}

// Describe names the metric.
func (p *pinned) Describe(ch chan<- *prometheus.Desc) { ch <- p.desc }

// Collect shows the partitions that are pinned; there is no series of others.
func (p *pinned) Collect(ch chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, s := range p.at {
		ch <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue,
			p.now().Sub(s.since).Seconds(), w.topic, strconv.Itoa(int(w.number)))
	}
}

// look takes what the brokers say of the partitions: their last stable offsets,
// asked first, and their ends. Asked the other way round, a partition that is
// written to would seem to have records behind an offset of before.
func (p *pinned) look(parts []rawPartition, stables, ends kadm.ListedOffsets) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := make(map[rawPartition]stable, len(p.at))
	for _, w := range parts {
		s, ok1 := stables.Lookup(w.topic, w.number)
		e, ok2 := ends.Lookup(w.topic, w.number)
		if !ok1 || !ok2 || s.Err != nil || e.Err != nil || s.Offset < 0 || s.Offset >= e.Offset {
			continue
		}
		at := stable{offset: s.Offset, behind: e.Offset - s.Offset, since: p.now()}
		if was, ok := p.at[w]; ok && was.offset == s.Offset {
			at.since = was.since
		}
		now[w] = at
	}
	p.at = now
}

// longerThan says in words what has been pinned for longer than a limit.
func (p *pinned) longerThan(limit time.Duration) (said []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, s := range p.at {
		if age := p.now().Sub(s.since); age > limit {
			said = append(said, fmt.Sprintf("%s: a transaction that is open at offset %d keeps %d behind it from being read, for %s", w, s.offset, s.behind, age.Round(time.Second)))
		}
	}
	slices.Sort(said)
	return said
}

// watchPinned looks while the filter runs. A transaction that is open for longer
// than our own may be makes /readyz red and is told once.
func (a *app) watchPinned(ctx context.Context, adm *kadm.Client) {
	p := newPinned()
	a.reg.MustRegister(p)
	a.ready.pins(func() []string { return p.longerThan(a.Config.Kafka.TransactionTimeout) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		told := false
		for tick := time.Tick(pinnedEvery); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if err := p.ask(ctx, adm, a.ready.consumed()); err != nil {
				a.Log.Debug("open transactions on raw topics were not looked at", "error", err)
			}
			why := p.longerThan(a.Config.Kafka.TransactionTimeout)
			if len(why) > 0 && !told {
				a.Log.Warn("a transaction stays open on a raw topic; what lies behind it is not read", "partitions", why)
			}
			told = len(why) > 0
		}
	}()
	a.cleanup.onStop("open transactions", func(context.Context) error { cancel(); <-done; return nil })
}

// ask asks the brokers and looks.
func (p *pinned) ask(ctx context.Context, adm *kadm.Client, running []string) error {
	var parts []rawPartition
	var names []string
	for _, name := range running {
		w, err := parsePartition(name)
		if err != nil {
			return err
		}
		if parts = append(parts, w); !slices.Contains(names, w.topic) {
			names = append(names, w.topic)
		}
	}
	if len(names) == 0 {
		p.look(nil, nil, nil)
		return nil
	}
	stables, err1 := adm.ListCommittedOffsets(ctx, names...)
	ends, err2 := adm.ListEndOffsets(ctx, names...)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("listing offsets of %v: %w", names, err)
	}
	p.look(parts, stables, ends)
	return nil
}
