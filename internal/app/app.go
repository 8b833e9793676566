package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/app/config"
	"dedupledger/internal/rules"
	"dedupledger/ledger"
	"dedupledger/ledger/cold"
	"dedupledger/ledger/hot"
	"dedupledger/processor"
	"dedupledger/topics"
)

const (
	stopTimeout = 10 * time.Second
	monthsEvery = time.Hour
	gapsEvery   = 15 * time.Second
)

// Options are what a run needs beside its configuration.
type Options struct {
	Config  *config.Config
	Version string
	Log     *slog.Logger
	// Leaving is closed when the next stop is for good: the process then leaves
	// its group. nil: it stays a member, to be started again.
	Leaving <-chan struct{}
	// ClientOptions are added to every Kafka client; for tests.
	ClientOptions []kgo.Opt
}

// app is one run.
type app struct {
	Options
	cleanup   cleanup
	ready     *readiness
	reg       *prometheus.Registry
	cold      *cold.Ledger
	hot       *hot.Hot
	tiers     *ledger.Tiers
	slot      config.Slot
	number    atomic.Int64    // the present slot
	slots     processor.Slots // nil: the slot is a number of the configuration's
	admission *admission
	making    making
}

// Run filters until ctx ends. What time can mend is retried, with the reason
// logged and /readyz red; what it cannot is returned as one sentence. A process
// runs one: go-redis has one logger for all.
func Run(ctx context.Context, o Options) (err error) {
	a := &app{Options: o, ready: newReadiness(), reg: prometheus.NewRegistry()}
	a.cleanup.log = o.Log
	a.admission = newAdmission(func(err error) error { return ExplainKafka(o.Config.Kafka, err) }, o.Log)
	hot.RouteLibraryLog(o.Log.With("component", "redis"))
	defer func() {
		stop, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopTimeout, errors.New("stopping timed out after "+stopTimeout.String()))
		defer cancel()
		err = errors.Join(err, a.cleanup.run(stop))
	}()
	newProcessor, err := a.start(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to stop while starting
		}
		return err
	}
	defer a.tellStop(ctx)()
	defer a.tellLeaving()()
	if err := a.filter(ctx, newProcessor); err != nil {
		return fmt.Errorf("the filter ended: %w", err)
	}
	a.Log.Info("stopped")
	return nil
}

// tellStop logs that the filter was told to stop: the batch in hand may take
// the whole grace. The function it returns waits for the line.
func (a *app) tellStop(ctx context.Context) (wait func()) {
	told := make(chan struct{})
	unset := context.AfterFunc(ctx, func() {
		defer close(told)
		a.Log.Info("stopping: the batch in hand is finished first", "grace", a.Config.Processor.ShutdownGrace.String())
	})
	return func() {
		if !unset() {
			<-told
		}
	}
}

// tellLeaving logs that the next stop is for good. The function it returns ends
// the waiting for that.
func (a *app) tellLeaving() (end func()) {
	over, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-over:
		case <-a.Leaving:
			a.Log.Info("told to leave: with the next stop this process leaves the group")
		}
	}()
	return func() {
		close(over)
		<-told
	}
}

// start is deliberately straight-line: each step needs what the one before it
// acquired, and the clean-up stack mirrors the order.
func (a *app) start(ctx context.Context) (func(prometheus.Registerer, <-chan struct{}) *processor.Processor, error) {
	a.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.buildInfo()
	addr, err := serveHTTP(ctx, a.Config.HTTP, a.ready, a.reg, &a.cleanup)
	if err != nil {
		return nil, err
	}
	a.Log.Info("starting", "version", a.Version, "http", addr.http, "ops", addr.ops, "group", a.Config.Kafka.Group, "slot", a.Config.Processor.Slot)
	if err := a.readSlot(); err != nil {
		return nil, err
	}
	set, err := a.Config.Rules()
	if err != nil {
		return nil, fmt.Errorf("compiling the rules: %w", err)
	}
	router, err := a.Config.Router()
	if err != nil {
		return nil, fmt.Errorf("compiling the topic names: %w", err)
	}
	input, err := a.Config.Input()
	if err != nil {
		return nil, fmt.Errorf("compiling how records are read: %w", err)
	}
	if a.making, err = newMaking(a.Config, set); err != nil {
		return nil, err
	}
	a.configInfo()
	if err := a.openCold(ctx); err != nil {
		return nil, err
	}
	if err := a.awaitRules(ctx); err != nil {
		return nil, err
	}
	if err := a.takeSlot(ctx); err != nil {
		return nil, err
	}
	if err := a.openHot(); err != nil {
		return nil, err
	}
	a.watchRedis(ctx)
	if err := a.awaitKafka(ctx, router); err != nil {
		return nil, err
	}
	a.warnWindows(set)
	a.warnObserving(set)
	return func(reg prometheus.Registerer, leaving <-chan struct{}) *processor.Processor {
		c := a.processorConfig(router, input, rules.NewKeyer(set))
		c.Registry, c.Leaving = reg, leaving
		return processor.New(c)
	}, nil
}

// openCold waits for PostgreSQL; a schema or login that does not fit ends the
// start.
func (a *app) openCold(ctx context.Context) error {
	c := a.Config.Postgres
	err := a.retry(ctx, "postgres", func(ctx context.Context) error {
		l, err := cold.Open(ctx, a.coldConfig(a.firstName()))
		a.cold = l
		return ExplainPostgres(c, err)
	}, func(err error) bool { return errors.Is(err, ledger.ErrUnavailable) && !refused(err) })
	if err != nil {
		return err
	}
	a.cleanup.onStop("postgres", func(context.Context) error { a.cold.Close(); return nil })
	mctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	headroom := monthsMetric(a.reg)
	beside.Go(func() { a.cold.Maintain(mctx, a.Config.Months.Ahead, monthsEvery, headroom) })
	beside.Go(func() { a.watchGaps(mctx) })
	a.cleanup.onStop("months and gaps", func(context.Context) error { cancel(); beside.Wait(); return nil })
	return nil
}

func (a *app) coldConfig(name string) cold.Config {
	c := a.Config.Postgres
	return cold.Config{
		URL: c.URL.Reveal(), Password: passwordOf(c.Password), Files: a.postgresFiles,
		MaxConns: int32(c.Pool.Max), Lifetime: c.Pool.Lifetime, ConnectTimeout: c.Pool.ConnectTimeout, //nolint:gosec // bounded by the configuration
		TCPUserTimeout: c.Pool.TCPUserTimeout, LockTimeout: c.LockTimeout, StatementTimeout: c.StatementTimeout,
		NoStatementCache: !c.StatementCache, KeepPerKey: a.Config.Sightings.KeepPerKey, RequireSyncStandby: c.RequireSyncStandby,
		ApplicationName: name, Logger: a.Log,
	}
}

func (a *app) hotConfig(ledgerID string) hot.Config {
	c := a.Config.Redis
	return hot.Config{
		Addrs: c.Addrs, MasterName: c.MasterName, Username: c.Username,
		Password: c.Password.Reveal, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.TLS.Dial(ctx, &net.Dialer{Timeout: redisDial}, network, addr)
		},
		Explain: func(err error) string { return explainRedis(c, err) },
		Prefix:  c.Prefix, LedgerID: ledgerID, TTLCap: c.TTLCap, Timeout: c.Timeout,
		Circuit: hot.Circuit{Errors: c.Circuit.Errors, Open: c.Circuit.Open}, Log: a.Log,
	}
}

// openHot needs no Redis to be there: the filter starts without it.
func (a *app) openHot() error {
	h, err := hot.Open(a.hotConfig(a.cold.ID().String()))
	if err != nil {
		return fmt.Errorf("preparing redis: %w", err)
	}
	a.hot = h
	a.cleanup.onStop("redis", func(context.Context) error { return h.Close() })
	observe, shown := ledgerMetrics(a.reg, h)
	a.tiers = ledger.NewTiers(ledger.TiersConfig{
		Cold: a.cold, Hot: h, Witnesses: a.cold, Log: a.Log.With("component", "hot"), Observe: observe,
	})
	shown(a.tiers)
	a.cleanup.onStop("facts", a.tiers.Close)
	return nil
}

func (a *app) redisStatus() string {
	if why := a.hot.Trouble(); why != "" {
		return why + ", verdicts unaffected"
	}
	return "ok"
}

// retry tries until it works, a failure that time does not mend, or ctx ends.
func (a *app) retry(ctx context.Context, what string, try func(context.Context) error, mends func(error) bool) error {
	said := ""
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := try(ctx)
		if err == nil {
			a.ready.wait(what, "")
			return nil
		}
		if ctx.Err() != nil || !mends(err) {
			return err
		}
		a.ready.wait(what, err.Error())
		if said != err.Error() {
			said = err.Error()
			a.Log.Warn("waiting for "+what, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// warnWindows says where the shortest window lies below raw retention: a resend
// older than that is NEW again while its original can still be read.
func (a *app) warnWindows(set *rules.Set) {
	shortest, _ := set.Windows()
	if r := a.Config.Topics.Create.RawRetention; shortest.Set && shortest.Value < r {
		a.Log.Warn("the shortest window is below raw retention", "window", shortest.Value, "rule", shortest.At, "raw_retention", r)
	}
}

func (a *app) processorConfig(router routerType, input topics.Input, keyer rules.Keyer) processor.Config {
	c := a.Config
	return processor.Config{
		Principal: a.principal(),
		Brokers:   c.Kafka.Brokers, Group: c.Kafka.Group, Slot: a.slot.Number, Slots: a.slots, Sessions: c.Processor.Sessions,
		Static: c.Processor.StaticMembership, Rebalance: c.Kafka.RebalanceTimeout, Transaction: c.Kafka.TransactionTimeout,
		Session: c.Kafka.SessionTimeout, FetchMax: c.Kafka.FetchMax, Compression: c.Kafka.Compression,
		MaxRecord: c.Topics.MaxRecordBytes, PayloadCopies: int64(c.Duplicates.PayloadCopies), BatchRecords: c.Processor.BatchRecords, ChunkRecords: c.Processor.ChunkRecords,
		BatchWait: c.Processor.BatchWait, StallExit: c.Processor.StallExit, ShutdownGrace: c.Processor.ShutdownGrace,
		MetricScopes: c.Metrics.Scopes, Router: router, Input: input, Keyer: keyer,
		Ledger: processor.Ledger{ID: a.cold.ID(), Registrar: registrar{a.tiers, a.cold}, Positions: a.cold, Rights: a.cold, Memory: a.tiers},
		Log:    a.Log, ClientOptions: append(a.kafkaOptions(), a.ClientOptions...),
	}
}
