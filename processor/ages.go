package processor

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ages collects dedup_oldest_unprocessed_seconds and dedup_lag_records. The age
// is computed when it is asked for: while the ledger does not answer nothing
// else happens that could raise it, and then it matters most.
type ages struct {
	oldest, lag *prometheus.Desc

	mu    sync.Mutex
	parts map[place]age
}

type age struct {
	since time.Time // of the oldest record in hand; zero: caught up
	lag   int64     // records behind the last stable offset
}

func newAges(reg prometheus.Registerer) *ages {
	labels := []string{"topic", "partition"}
	a := &ages{
		oldest: prometheus.NewDesc("dedup_oldest_unprocessed_seconds", "Age of the oldest record that is read and not committed; 0 when caught up.", labels, nil),
		lag:    prometheus.NewDesc("dedup_lag_records", "Offsets between the last commit and the last stable offset; a transaction marker counts as one.", labels, nil),
		parts:  map[place]age{},
	}
	reg.MustRegister(a)
	return a
}

// Describe names both metrics.
func (a *ages) Describe(ch chan<- *prometheus.Desc) {
	ch <- a.oldest
	ch <- a.lag
}

// Collect shows the partitions of all sessions.
func (a *ages) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for w, g := range a.parts {
		seconds := 0.0
		if !g.since.IsZero() {
			seconds = max(0, now.Sub(g.since).Seconds())
		}
		partition := strconv.Itoa(int(w.partition))
		ch <- prometheus.MustNewConstMetric(a.oldest, prometheus.GaugeValue, seconds, w.topic, partition)
		ch <- prometheus.MustNewConstMetric(a.lag, prometheus.GaugeValue, float64(g.lag), w.topic, partition)
	}
}

// inHand notes the oldest record of each partition in a batch. A batch that
// comes again keeps the time of its first coming.
func (a *ages) inHand(b *batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range b.items {
		w := b.items[i].part.place
		if g := a.parts[w]; g.since.IsZero() {
			g.since = b.items[i].rec.Timestamp
			a.parts[w] = g
		}
	}
}

// done follows a commit.
func (a *ages) done(b *batch) {
	ends := b.ends()
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, end := range ends {
		a.parts[p.place] = age{lag: max(0, p.logEnd-end.Offset)}
	}
}

// idle says that nothing is in hand of the partitions that run.
func (a *ages) idle(parts map[place]*part) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w, p := range parts {
		if p.phase == running {
			a.parts[w] = age{lag: a.parts[w].lag}
		}
	}
}

// forget drops the series of a partition that went elsewhere.
func (a *ages) forget(w place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.parts, w)
}
