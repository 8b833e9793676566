package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"dedupledger/internal/devservices"
)

// outageEvery is between two looks at what is committed: pauses are exact to it
// and to the time of the answer.
const outageEvery = 50 * time.Millisecond

// A backlog is cut into parts, of which each stretch takes one: half of one to
// warm up, four as usual, two without Redis. The rest is there so that no
// partition is at its end meanwhile, since some sessions are faster than others.
const backlogParts = 12

// outage is one repetition: a filter that works off a backlog while Redis and
// then PostgreSQL are taken from it.
type outage struct {
	*stage
	name, last string // of the setting, and of the raw topic's last part
	set        *setting
	sink       *sink
	feed       feeder
	child      *devservices.Child
	url        string // of the filter's metrics
	seen       timeline
}

// outage measures what a filter does without Redis, and when PostgreSQL was away
// and is back. Stretches as usual lie between, so that what else the machine does
// is in both; messages come at a fixed rate all along.
func (s *stage) outage(ctx context.Context, n int) (f figures, err error) {
	o, err := s.prepareOutage(ctx, n)
	if o.set != nil {
		defer s.drop(ctx, o.set.db)
	}
	defer s.dropTopics(context.WithoutCancel(ctx), append(outputsOf(o.name, o.last), o.sink.topic)...)
	if err != nil {
		return f, err
	}
	if err := o.start(ctx); err != nil {
		return f, err
	}
	f, err = o.measure(ctx)
	if err != nil {
		o.feed.stop()
		_ = o.child.Kill() // the error that counts is the first
		return f, errors.Join(fmt.Errorf("%w; end of its log:\n%s", err, o.child.Log()), s.allBack(ctx))
	}
	if err := o.child.Stop(ctx); err != nil {
		return f, err //nolint:wrapcheck // a sentence already
	}
	if code := o.child.ExitCode(); code != 0 {
		return f, fmt.Errorf("exit code %d after it was asked to end; end of its log:\n%s", code, o.child.Log())
	}
	return f, s.checkAccounts(ctx, o.set.db, o.feed.sent())
}

// prepareOutage makes a raw topic with a backlog. It has a partition for each
// scope, so that sessions have as much to do each, as long as their number
// divides that of the scopes.
func (s *stage) prepareOutage(ctx context.Context, n int) (*outage, error) {
	flows := slices.Clone(s.flows)
	for i := range flows {
		flows[i].partition = int32(i)
	}
	o := &outage{stage: s, name: s.id + "-outage-" + strconv.Itoa(n), last: s.id + ".outage-" + strconv.Itoa(n)}
	o.sink = &sink{client: s.client, topic: "raw-ingest." + o.last, flows: flows}
	var err error
	if o.set, err = s.prepareFor(ctx, o.name, regexp.QuoteMeta(o.last), scopes, s.create, o.sink.topic); err != nil {
		return o, err
	}
	if err := s.awaitTopic(ctx, o.sink.topic, scopes); err != nil {
		return o, err
	}
	return o, s.fillUp(ctx, o.sink)
}

// start runs the filter, and then the messages that come meanwhile.
func (o *outage) start(ctx context.Context) error {
	port, err := devservices.FreePort()
	if err != nil {
		return err //nolint:wrapcheck // a sentence already
	}
	listen := "127.0.0.1:" + strconv.Itoa(port)
	o.url = "http://" + listen + "/metrics"
	env := []string{"DEDUP_HTTP_LISTEN=" + listen, "DEDUP_REDIS_ADDRS=" + o.redis.Addr()}
	if o.child, err = devservices.StartChild(o.binary, []string{"run", "-c", o.set.config}, env, o.set.log); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	o.feed = feeder{sink: o.sink, rate: o.o.rate}
	o.feed.start(ctx, o.o.messages)
	return nil
}

// allBack lets the phases behind have their services.
func (s *stage) allBack(ctx context.Context) error {
	return errors.Join(s.redis.Continue(), s.redis.Start(ctx), s.server.Start(ctx))
}

// until looks on, at every step of outageEvery, until something has come.
func (o *outage) until(ctx context.Context, come func() (bool, error)) error {
	t := time.NewTicker(outageEvery)
	defer t.Stop()
	for moved := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.child.Done():
			return errors.New("the process ended")
		case <-t.C:
		}
		if done := o.offsets(ctx, o.set.group, o.sink.topic); done.sum() > o.done() {
			moved = time.Now()
			o.seen = append(o.seen, moment{moved, done})
		} else if len(o.seen) > 0 {
			o.seen = append(o.seen, moment{time.Now(), o.seen[len(o.seen)-1].done})
		}
		if limit := stuckAfter + o.o.away; time.Since(moved) > limit {
			return fmt.Errorf("no progress for %s at %d of %d messages", limit, o.done(), o.feed.sent())
		}
		if ok, err := come(); ok || err != nil {
			return err
		}
	}
}

// during looks on while something is done.
func (o *outage) during(ctx context.Context, do func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	return o.until(ctx, func() (bool, error) {
		select {
		case err := <-ended:
			return true, err
		default:
			return false, nil
		}
	})
}

// done is how many messages are committed.
func (o *outage) done() int64 {
	if len(o.seen) == 0 {
		return 0
	}
	return o.seen[len(o.seen)-1].done.sum()
}
