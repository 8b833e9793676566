package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dedupledger/internal/app/config"
	"dedupledger/processor"
)

// readiness is what /readyz answers from: where the start stands, then the
// filter's own status. It looks at no store when asked.
type readiness struct {
	mu       sync.Mutex
	starting map[string]string // what is waited for -> why
	lacking  string            // rights on Kafka, as a sentence
	filter   *processor.Processor
	redis    func() string
	kafka    func() string   // why connections are refused, or ""
	pinned   func() []string // open transactions on raw topics, in words
}

func newReadiness() *readiness {
	return &readiness{starting: map[string]string{"filter": "starting"}}
}

// wait notes that the start waits for something; an empty why ends it.
func (r *readiness) wait(what, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why == "" {
		delete(r.starting, what)
		return
	}
	r.starting[what] = why
}

// lack notes which rights on Kafka are missing; empty: none.
func (r *readiness) lack(rights string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lacking = rights
}

// pins tells where open transactions are told.
func (r *readiness) pins(told func() []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pinned = told
}

// consumed are the raw partitions that this process consumes, as topic/partition.
func (r *readiness) consumed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.filter == nil {
		return nil
	}
	return r.filter.Status().Running
}

// run hands over to the filter.
func (r *readiness) run(p *processor.Processor, redis, kafka func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filter, r.redis, r.kafka = p, redis, kafka
	delete(r.starting, "filter")
}

// ended takes the filter back: another may follow.
func (r *readiness) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filter = nil
	r.starting["filter"] = "stopped"
}

// report is the body of /readyz.
type report struct {
	Status     string            `json:"status"`
	Waiting    map[string]string `json:"starting,omitempty"`
	Postgres   string            `json:"postgres,omitempty"`
	Redis      string            `json:"redis,omitempty"`
	Slot       *int              `json:"slot,omitempty"`
	Kafka      string            `json:"kafka,omitempty"`
	Sessions   int               `json:"sessions"`
	Joining    int               `json:"joining,omitempty"`
	Running    []string          `json:"running,omitempty"`
	Pending    []string          `json:"waiting,omitempty"`
	Stuck      []heldReport      `json:"stuck,omitempty"`
	Held       []heldReport      `json:"held,omitempty"`
	LastCommit string            `json:"lastCommit,omitempty"`
	Failing    string            `json:"notCommitting,omitempty"`
	Rights     string            `json:"missingRights,omitempty"`
	Pinned     []string          `json:"openTransactions,omitempty"`
}

type heldReport struct {
	Partition string `json:"partition"`
	Reason    string `json:"reason"`
	Why       string `json:"why"`
}

// report is not ready while anything is waited for: a partition that is held,
// learns or waits for the position rule, a ledger that does not answer, no
// session, a transaction that stays open on a raw topic, new connections to Kafka
// that are refused: those that are open still work, and it is time to do something
// before they end. Redis down is no reason.
func (r *readiness) report() (report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.filter == nil {
		return report{Status: "not ready", Waiting: r.waitingFor()}, false
	}
	st := r.filter.Status()
	out := report{
		Status: "ready", Postgres: "ok", Redis: r.redis(), Kafka: r.kafka(), Rights: r.lacking, Slot: &st.Slot, Waiting: r.waitingFor(),
		Sessions: st.Sessions, Joining: st.Joining, Running: st.Running, Pending: st.Waiting,
	}
	if st.Blocked > 0 {
		what := "no answer"
		if st.Denied {
			what = "rights missing"
		}
		out.Postgres = fmt.Sprintf("%s for %s (%s)", what, st.Blocked.Round(time.Second), st.BlockedWhy)
	}
	for _, h := range st.Stuck {
		out.Stuck = append(out.Stuck, heldReport(h))
	}
	for _, h := range st.Held {
		out.Held = append(out.Held, heldReport(h))
	}
	if r.pinned != nil {
		out.Pinned = r.pinned()
	}
	if !st.LastCommit.IsZero() {
		out.LastCommit = st.LastCommit.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if st.Failing > 0 {
		out.Failing = fmt.Sprintf("for %s (%s)", st.Failing.Round(time.Second), st.FailingWhy)
	}
	ready := out.Kafka == "" && r.lacking == "" && st.Failing == 0 && st.Sessions > 0 && st.Joining == 0 && st.Blocked == 0 && len(st.Held) == 0 && len(st.Waiting) == 0 && len(out.Pinned) == 0
	if !ready {
		out.Status = "not ready"
	}
	return out, ready
}

// waitingFor is called with the mutex held.
func (r *readiness) waitingFor() map[string]string {
	waiting := make(map[string]string, len(r.starting))
	maps.Copy(waiting, r.starting)
	return waiting
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	body, ready := r.report()
	w.Header().Set("Content-Type", "application/json")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // fails when the client went away
}

// listeners are the addresses that are listened on; "" where nothing is.
type listeners struct{ http, ops string }

// serveHTTP opens http.listen and http.ops_listen. /healthz, /readyz and
// /metrics are at the latter if it is set, and nowhere else: who gives them a
// port of their own does not want them on the other one.
func serveHTTP(ctx context.Context, c config.HTTP, ready *readiness, reg prometheus.Gatherer, stop *cleanup) (l listeners, err error) {
	rest, ops := opsHandler(ready, reg), http.Handler(nil)
	if c.OpsListen != "" {
		rest, ops = moved(c.OpsListen), rest
	}
	if l.http, err = serve(ctx, "http.listen", c.Listen, rest, stop); err != nil {
		return l, err
	}
	l.ops, err = serve(ctx, "http.ops_listen", c.OpsListen, ops, stop)
	return l, err
}

// opsHandler answers /healthz, /readyz and /metrics. These three tell nothing of
// a message, so any address may be listened on without a token.
func opsHandler(ready *readiness, reg prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n")) // likewise
	})
	mux.Handle("GET /readyz", ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	return mux
}

// moved is all that is left at http.listen: a probe or scrape that still comes
// here is told where to go.
func moved(opsListen string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "nothing is served here: /healthz, /readyz and /metrics are at http.ops_listen ("+opsListen+")", http.StatusNotFound)
	})
}

// serve serves at an address until the clean-up; an empty address serves
// nothing. key is the setting that an error names.
func serve(ctx context.Context, key, listen string, h http.Handler, c *cleanup) (string, error) {
	if listen == "" {
		return "", nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return "", fmt.Errorf("%s %q: %w", key, listen, err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	c.onStop(key, func(ctx context.Context) error {
		err := srv.Shutdown(ctx)
		if serveErr := <-done; !errors.Is(serveErr, http.ErrServerClosed) {
			err = errors.Join(err, serveErr)
		}
		return err
	})
	return l.Addr().String(), nil
}
