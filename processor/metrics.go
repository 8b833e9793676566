package processor

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// metrics is docs/operations.md as far as the filter goes. All label values known
// beforehand are born at 0, so that the first increase can be seen.
type metrics struct {
	messages      *prometheus.CounterVec
	scopes        *scopeCounters
	invalid       *prometheus.CounterVec
	observed      *prometheus.CounterVec
	bytes         *prometheus.CounterVec
	endToEnd      *prometheus.HistogramVec
	stages        *prometheus.HistogramVec
	records       prometheus.Histogram
	lastCommit    *prometheus.GaugeVec
	heldParts     *prometheus.GaugeVec
	behindRecords *prometheus.GaugeVec
	foreignTotal  *prometheus.CounterVec
	learnedTotal  *prometheus.CounterVec
	belowTotal    *prometheus.CounterVec
	gapTotal      *prometheus.CounterVec
	orphansTotal  *prometheus.CounterVec
	sessions      prometheus.Gauge
	rebuilds      *prometheus.CounterVec
	rebalances    prometheus.Counter

	mu   sync.Mutex
	held map[int]map[[2]string]int
	ages *ages
}

func newMetrics(p *Processor) *metrics {
	f := factory{p.cfg.Registry}
	m := &metrics{
		messages:      f.counter("dedup_messages_total", "Raw records by verdict, counted after the commit.", "status"),
		scopes:        newScopeCounters(f, p.cfg.MetricScopes),
		invalid:       f.counter("dedup_invalid_total", "INVALID records by closed code.", "code"),
		observed:      f.counter("dedup_observed_messages_total", "Records that went to clean although they are repeats or INVALID: their flows only observe.", "status"),
		bytes:         f.counter("dedup_bytes_total", "Bytes of record values.", "direction"),
		endToEnd:      f.histogram("dedup_end_to_end_seconds", "Raw record time to commit.", prometheus.ExponentialBuckets(0.005, 2, 16), "topic"),
		stages:        f.histogram("dedup_batch_seconds", "Time of a batch by stage.", prometheus.ExponentialBuckets(0.001, 2, 14), "stage"),
		behindRecords: f.gauge("dedup_ledger_behind_records", "Committed in Kafka and lost in PostgreSQL; falls while learning.", "topic", "partition"),
		lastCommit:    f.gauge("dedup_last_commit_timestamp_seconds", "When the session last committed.", "session"),
		heldParts:     f.gauge("dedup_held_partitions", "Partitions not consumed until settled.", "topic", "reason"),
		foreignTotal:  f.counter("dedup_foreign_offsets_total", "Group offsets set by another tool; not obeyed.", "topic"),
		learnedTotal:  f.counter("dedup_learned_records_total", "Records learned from the outputs.", "topic"),
		belowTotal:    f.counter("dedup_below_committed_total", "Records read again below the committed position and skipped.", "topic"),
		gapTotal:      f.counter("dedup_gap_records_total", "Offsets of raw that get no output: deleted before they were read, or cut.", "topic"),
		orphansTotal:  f.counter("dedup_orphans_total", "Rows decided and never committed that were closed: the next copy was NEW.", "topic"),
		rebuilds:      f.counter("dedup_session_rebuilds_total", "Client sessions rebuilt after an error.", "reason"),
		held:          map[int]map[[2]string]int{},
		ages:          newAges(p.cfg.Registry),
	}
	m.records = f.one(prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "dedup_batch_records", Help: "Records per batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 14),
	})).(prometheus.Histogram)
	m.sessions = f.one(prometheus.NewGauge(prometheus.GaugeOpts{Name: "dedup_sessions", Help: "Client sessions alive."})).(prometheus.Gauge)
	m.rebalances = f.one(prometheus.NewCounter(prometheus.CounterOpts{Name: "dedup_rebalances_total", Help: "Rebalances that took partitions away."})).(prometheus.Counter)
	f.one(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "dedup_ledger_blocked_seconds", Help: "Since when PostgreSQL does not answer; 0: it does.",
	}, func() float64 { return p.Status().Blocked.Seconds() }))
	m.bear()
	return m
}

// bear makes every label value known beforehand.
func (m *metrics) bear() {
	for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Drift, ledger.Invalid} {
		m.messages.WithLabelValues(v.String())
	}
	for _, v := range []ledger.Verdict{ledger.Seen, ledger.Drift, ledger.Invalid} {
		m.observed.WithLabelValues(v.String())
	}
	for _, d := range []string{"in", "clean", "duplicates", "dead_letter"} {
		m.bytes.WithLabelValues(d)
	}
	for _, s := range []string{"poll", "register", "commit", "confirm"} {
		m.stages.WithLabelValues(s)
	}
	for _, r := range []string{"end", "group"} {
		m.rebuilds.WithLabelValues(r)
	}
}

func (m *metrics) stage(name string, d time.Duration) {
	m.stages.WithLabelValues(name).Observe(d.Seconds())
}
func (m *metrics) batchRecords(n int)          { m.records.Observe(float64(n)) }
func (m *metrics) rebalanced()                 { m.rebalances.Inc() }
func (m *metrics) foreign(topic string)        { m.foreignTotal.WithLabelValues(topic).Inc() }
func (m *metrics) belowCommitted(topic string) { m.belowTotal.WithLabelValues(topic).Inc() }
func (m *metrics) gap(topic string, n int64)   { m.gapTotal.WithLabelValues(topic).Add(float64(n)) }
func (m *metrics) orphan(topic string)         { m.orphansTotal.WithLabelValues(topic).Inc() }
func (m *metrics) learned(topic string, n int) { m.learnedTotal.WithLabelValues(topic).Add(float64(n)) }
func (m *metrics) rebuilt(reason string)       { m.rebuilds.WithLabelValues(reason).Inc() }

// verdicts are counts by verdict.
type verdicts [ledger.Invalid + 1]int

func (c *verdicts) each(do func(v ledger.Verdict, n float64)) {
	for v := ledger.New; v <= ledger.Invalid; v++ {
		if c[v] > 0 {
			do(v, float64(c[v]))
		}
	}
}

// accounts counts the batch by account. Records of one come in a row, as a
// rule, so the map is seldom asked.
func (b *batch) accounts() map[string]*verdicts {
	all := make(map[string]*verdicts, 8)
	var of *verdicts
	for i := range b.items {
		account := b.items[i].reg.Account
		if i == 0 || account != b.items[i-1].reg.Account {
			if of = all[account]; of == nil {
				of = new(verdicts)
				all[account] = of
			}
		}
		of[b.items[i].verdict]++
	}
	return all
}

// committed counts a batch, only now: redeliveries would count twice.
func (m *metrics) committed(session int, b *batch, outs []*kgo.Record) {
	var bytes, counts, observed verdicts // bytes by where they went, as verdicts say it where none observes
	var endToEnd prometheus.Observer
	for i := range b.items {
		it := &b.items[i]
		counts[it.verdict]++
		if it.verdict == ledger.Invalid {
			m.invalid.WithLabelValues(it.reason).Inc()
		}
		if it.observed() {
			observed[it.verdict]++
			bytes[ledger.New] += len(outs[i].Value)
		} else {
			bytes[it.verdict] += len(outs[i].Value)
		}
		bytes[0] += len(it.rec.Value)
		if i == 0 || it.rec.Topic != b.items[i-1].rec.Topic {
			endToEnd = m.endToEnd.WithLabelValues(it.rec.Topic)
		}
		endToEnd.Observe(max(0, b.committed.Sub(it.rec.Timestamp).Seconds()))
	}
	counts.each(func(v ledger.Verdict, n float64) { m.messages.WithLabelValues(v.String()).Add(n) })
	observed.each(func(v ledger.Verdict, n float64) { m.observed.WithLabelValues(v.String()).Add(n) })
	for account, of := range b.accounts() {
		m.scopes.add(account, of)
	}
	m.bytes.WithLabelValues("in").Add(float64(bytes[0]))
	m.bytes.WithLabelValues("clean").Add(float64(bytes[ledger.New]))
	m.bytes.WithLabelValues("duplicates").Add(float64(bytes[ledger.Seen] + bytes[ledger.Drift]))
	m.bytes.WithLabelValues("dead_letter").Add(float64(bytes[ledger.Invalid]))
	m.lastCommit.WithLabelValues(strconv.Itoa(session)).SetToCurrentTime()
}

// behind shows what is left to learn; nothing drops the series.
func (m *metrics) behind(w place, records int64) {
	partition := strconv.Itoa(int(w.partition))
	if records <= 0 {
		m.behindRecords.DeleteLabelValues(w.topic, partition)
		return
	}
	m.behindRecords.WithLabelValues(w.topic, partition).Set(float64(records))
}

// partitions shows what is held, over all sessions.
func (m *metrics) partitions(session int, parts map[place]*part) {
	now := map[[2]string]int{}
	for _, p := range parts {
		if ph, reason, _ := p.seen(); ph == held {
			now[[2]string{p.topic, reason}]++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.held[session]
	m.held[session] = now
	for k := range before {
		m.showHeld(k)
	}
	for k := range now {
		m.showHeld(k)
	}
}

func (m *metrics) showHeld(k [2]string) {
	n := 0
	for _, h := range m.held {
		n += h[k]
	}
	m.heldParts.WithLabelValues(k[0], k[1]).Set(float64(n))
}

// factory registers with the injected registerer.
type factory struct{ reg prometheus.Registerer }

func (f factory) one(c prometheus.Collector) prometheus.Collector {
	f.reg.MustRegister(c)
	return c
}

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.reg.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.reg.MustRegister(g)
	return g
}

func (f factory) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.reg.MustRegister(h)
	return h
}
