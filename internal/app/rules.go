package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dedupledger/internal/app/config"
	"dedupledger/internal/rules"
	"dedupledger/ledger"
	"dedupledger/processor"
)

// rulesEvery is how often a process looks which rules are active.
const rulesEvery = 2 * time.Second

// making is what makes keys in this process.
type making struct {
	rules.Making
	fingerprint string
	text        []byte // as the ledger keeps it
}

func newMaking(c *config.Config, set *rules.Set) (making, error) {
	m := making{Making: set.Making(c.MakesKeys()...)}
	m.fingerprint = m.Fingerprint()
	var err error
	if m.text, err = json.Marshal(m.Making); err != nil {
		return m, fmt.Errorf("writing the rules that make keys: %w", err)
	}
	return m, nil
}

func (m *making) rules() ledger.Rules {
	return ledger.Rules{Fingerprint: m.fingerprint, Text: m.text}
}

// refused says why this process may not filter while those rules are active, or "".
func (m *making) refused(active *ledger.Rules) string {
	const repair = "; `dedup config activate --dry-run` tells what that would mean, `dedup config activate` makes those of this configuration active"
	switch active.Fingerprint {
	case m.fingerprint:
		return ""
	case "":
		return "this ledger has keys, and no rules are recorded as having made them: a version before 0.2 did" + repair
	}
	what := "the rules that make keys are not the active ones"
	differ, err := m.differences(active)
	switch {
	case err != nil:
		differ = []string{err.Error()}
	case len(differ) == 0:
		differ = []string{"the active ones are of a program that makes keys in another way"}
	}
	return fmt.Sprintf("%s: fingerprint %s here, %s active since %s. %s%s", what, m.fingerprint, active.Fingerprint,
		active.Since.Format(time.RFC3339), strings.Join(differ, "; "), repair)
}

func (m *making) differences(active *ledger.Rules) ([]string, error) {
	if active.Text == nil {
		return nil, errors.New("what the active ones say is not kept")
	}
	theirs, err := rules.ParseMaking(active.Text)
	if err != nil {
		return nil, err //nolint:wrapcheck // a sentence already
	}
	return m.Differences(theirs), nil
}

// awaitRules waits until this process's rules are the active ones. The first
// process on an empty ledger makes its own active. Two sets at once would find two
// keys in one message, and it would be in clean twice.
func (a *app) awaitRules(ctx context.Context) error {
	said := ""
	for {
		var active ledger.Rules
		err := a.retry(ctx, "postgres", func(ctx context.Context) (err error) {
			active, err = a.cold.FirstRules(ctx, a.making.rules(), false)
			return err
		}, func(err error) bool { return errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrDenied) })
		if err != nil {
			return err
		}
		why := a.making.refused(&active)
		a.ready.wait("rules", why)
		if why == "" {
			if said != "" {
				a.Log.Info("the rules of this process are the active ones now", "fingerprint", a.making.fingerprint)
			}
			return nil
		}
		if said != why {
			said = why
			a.Log.Warn("not filtering: "+why, "fingerprint", a.making.fingerprint, "active", active.Fingerprint)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rulesEvery):
		}
	}
}

// errDeactivated ends a filter whose rules are not the active ones any more.
var errDeactivated = errors.New("other rules were made active")

// filter runs filters, one after the other: each as long as its rules are active.
//
// One that runs when other rules are made active stops within a few seconds, as at
// a shutdown: the batch in hand is committed, then its members leave the group, so
// that a process with the active rules has the partitions at once. It does not end:
// it waits, not ready, until its rules are active again or it is stopped. What it
// registers in those seconds is as what it registered before them.
func (a *app) filter(ctx context.Context, newProcessor func(prometheus.Registerer, <-chan struct{}) *processor.Processor) error {
	for {
		if err := a.awaitRules(ctx); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // told to stop while waiting
			}
			return err
		}
		err := a.filterOnce(ctx, newProcessor)
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (a *app) filterOnce(ctx context.Context, newProcessor func(prometheus.Registerer, <-chan struct{}) *processor.Processor) error {
	reg := &lifetime{Registerer: a.reg}
	defer reg.end()
	leaving := make(chan struct{})
	var once sync.Once
	leave := func() { once.Do(func() { close(leaving) }) }
	p := newProcessor(reg, leaving)
	a.ready.run(p, a.redisStatus, a.admission.why)
	defer a.ready.ended()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beside sync.WaitGroup
	beside.Go(func() { a.watchRules(ctx, func() { leave(); cancel(errDeactivated) }) })
	beside.Go(func() {
		select {
		case <-a.Leaving:
			leave()
		case <-ctx.Done():
		}
	})
	err := p.Run(ctx)
	cancel(nil)
	beside.Wait()
	return err //nolint:wrapcheck // the caller does
}

// watchRules calls deactivated when the active rules are others. While PostgreSQL does not answer, nobody
// can register anything.
func (a *app) watchRules(ctx context.Context, deactivated func()) {
	t := time.NewTicker(rulesEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		active, err := a.cold.ActiveRules(ctx)
		if err == nil && active.Fingerprint == "" {
			// PostgreSQL was put back to a state before any process came. What this one
			// learns again from the outputs has the keys of these rules.
			active, err = a.cold.FirstRules(ctx, a.making.rules(), true)
		}
		if err != nil {
			continue
		}
		if why := a.making.refused(&active); why != "" {
			a.Log.Warn("stopping to filter: "+why, "fingerprint", a.making.fingerprint, "active", active.Fingerprint)
			deactivated()
			return
		}
	}
}

// lifetime is a registerer whose collectors are taken out again at its end. Clients
// of several sessions register theirs at once.
type lifetime struct {
	prometheus.Registerer
	mu  sync.Mutex
	all []prometheus.Collector
}

func (l *lifetime) Register(c prometheus.Collector) error {
	if err := l.Registerer.Register(c); err != nil {
		return err //nolint:wrapcheck // it stands for the registerer
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
	return nil
}

func (l *lifetime) MustRegister(cs ...prometheus.Collector) {
	l.Registerer.MustRegister(cs...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, cs...)
}

func (l *lifetime) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.all {
		l.Unregister(c)
	}
}

// configInfo shows the fingerprint: two values among processes are two sets of
// rules at work.
func (a *app) configInfo() {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dedup_config_info", Help: "1; fingerprint of the rules that make keys."}, []string{"fingerprint"})
	g.WithLabelValues(a.making.fingerprint).Set(1)
	a.reg.MustRegister(g)
}

// warnObserving says once which rules are not enforced.
func (a *app) warnObserving(set *rules.Set) {
	all := set.Observing()
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dedup_observe_rules", Help: "Rules with mode: observe: repeats of what they apply to are in clean, marked."})
	g.Set(float64(len(all)))
	a.reg.MustRegister(g)
	for _, r := range all {
		a.Log.Warn("observing, not enforcing: repeats and INVALID go to clean too, marked by dedup-status; one record per key and window (law 2) is not promised there",
			"match", r.Match.Value, "key", r.Key.Value, "rule", r.Mode.At.String())
	}
}
