package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// measure goes through all that happens.
func (o *outage) measure(ctx context.Context) (f figures, err error) {
	if err := o.pass(ctx, o.part()/2); err != nil {
		return f, err
	}
	var m outageSpans
	for _, step := range []func(context.Context) error{
		o.usual(&m, 0),
		o.withoutRedis(&m.killed, "Redis killed", o.redis.Kill, o.redis.Start),
		o.usual(&m, 1),
		o.withoutRedis(&m.frozen, "Redis frozen", o.redis.Pause, func(context.Context) error { return o.redis.Continue() }),
		o.usual(&m, 2),
		func(ctx context.Context) error { return o.withoutPostgres(ctx, &m) },
		o.usual(&m, 3),
	} {
		if err := step(ctx); err != nil {
			return f, err
		}
	}
	if err := o.feed.end(); err != nil {
		return f, err
	}
	say("waiting for the rest")
	if err := o.until(ctx, func() (bool, error) { return o.done() >= o.feed.sent(), nil }); err != nil {
		return f, err
	}
	u, err := usageOf(o.child.PID())
	if err != nil {
		return f, err
	}
	x := outageOf(o.seen, &m, o.sink.flows)
	return figures{Messages: o.feed.sent(), PerSecond: x.Normal.PerSecond, Peak: float64(u.peak) / mb, Outage: x}, nil
}

// part is how many messages a stretch takes.
func (o *outage) part() int64 { return o.o.messages / backlogParts }

// pass looks on until so many messages more are committed.
func (o *outage) pass(ctx context.Context, messages int64) error {
	from := o.done()
	return o.until(ctx, func() (bool, error) { return o.done() >= from+messages, nil })
}

// stretch makes a span of one part, which begins with what is done to a service.
func (o *outage) stretch(ctx context.Context, s *span, title string, harm func() error) error {
	s.from = time.Now()
	if err := harm(); err != nil {
		return err
	}
	if err := o.pass(ctx, o.part()); err != nil {
		return err
	}
	s.to = time.Now()
	return o.tell(*s, title)
}

// tell says what a stretch came to, if the filter had enough to do all along.
func (o *outage) tell(s span, title string) error {
	say("  %-16s %8.0f msg/s, longest pause %.2f s", title, o.seen.rate(s), o.seen.pause(s, total).Seconds())
	done, sent := o.seen[len(o.seen)-1].done, o.feed.sent()/scopes
	for _, f := range o.sink.flows {
		if done[f.partition] >= sent-batch {
			return fmt.Errorf("partition %d had nothing left before the stretch %q ended: its rate is not the filter's; raise -messages", f.partition, title)
		}
	}
	return nil
}

func (o *outage) usual(m *outageSpans, n int) func(context.Context) error {
	return func(ctx context.Context) error {
		return o.stretch(ctx, &m.normal[n], fmt.Sprintf("normal, %d", n+1), func() error { return nil })
	}
}

// withoutRedis is a stretch in which Redis is away; behind it the filter has it
// again.
func (o *outage) withoutRedis(s *span, title string, harm func() error, mend func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := o.stretch(ctx, s, title, harm); err != nil {
			return err
		}
		// As many errors as open the circuit may take longer than a short stretch.
		if err := o.awaitCircuit(ctx, true); err != nil {
			return err
		}
		if err := o.during(ctx, mend); err != nil {
			return err
		}
		return o.awaitCircuit(ctx, false)
	}
}

// withoutPostgres stops PostgreSQL for a while and looks on until as much is
// done as came meanwhile.
func (o *outage) withoutPostgres(ctx context.Context, m *outageSpans) error {
	say("  PostgreSQL is away for %s", o.o.away)
	began, before := time.Now(), o.feed.sent()
	if err := o.during(ctx, o.server.Stop); err != nil {
		return err
	}
	if err := o.until(ctx, func() (bool, error) { return time.Since(began) >= o.o.away, nil }); err != nil {
		return err
	}
	if err := o.during(ctx, func(ctx context.Context) error {
		err := o.server.Start(ctx)
		m.back = time.Now()
		return err //nolint:wrapcheck // a sentence already
	}); err != nil {
		return err
	}
	missed, from := o.feed.sent()-before, o.seen.at(m.back).done.sum()
	if err := o.until(ctx, func() (bool, error) {
		_, moved := o.seen.eachGrown(m.back, o.sink.flows)
		return moved && o.done() >= from+missed, nil
	}); err != nil {
		return err
	}
	first, _ := o.seen.grown(m.back, total)
	m.caughtUp = span{m.back.Add(first), time.Now()}
	say("  PostgreSQL is back: first commit after %.2f s", first.Seconds())
	return o.tell(m.caughtUp, "catching up")
}

// awaitCircuit waits until the filter takes Redis for down, or for back.
func (o *outage) awaitCircuit(ctx context.Context, open bool) error {
	return o.until(ctx, func() (bool, error) {
		is, err := circuitOpen(ctx, o.url)
		return err == nil && is == open, err
	})
}

// circuitOpen asks the filter's metrics.
func circuitOpen(ctx context.Context, url string) (bool, error) {
	const name = "dedup_hot_circuit_open "
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, fmt.Errorf("asking for the metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, fmt.Errorf("asking for the metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), name); ok {
			return strings.TrimSpace(v) == "1", nil
		}
	}
	return false, fmt.Errorf("the metrics have no %s(%w)", name, lines.Err())
}
