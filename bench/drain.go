package main

import (
	"context"
	"fmt"
	"time"

	"dedupledger/internal/devservices"
)

const (
	watchEvery = 100 * time.Millisecond
	// stuckAfter without progress is a fault, not slowness.
	stuckAfter = 2 * time.Minute
)

// sample is how far a drain is at one moment.
type sample struct {
	at   time.Time
	done int64
	usage
}

// drain is a process at work on the raw topic.
type drain struct {
	stage *stage
	taken func(context.Context) int64 // messages so far; 0: none, or not to be told now
	pid   int
	ended <-chan struct{} // closed when the process ends, which it should not
}

// watch follows the process until all messages are done.
func (d *drain) watch(ctx context.Context, started func()) ([]sample, error) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	var samples []sample
	for moved := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-d.ended:
			return nil, fmt.Errorf("the process ended")
		case <-t.C:
		}
		done := d.taken(ctx)
		switch last := len(samples) - 1; {
		case done == 0, last >= 0 && done == samples[last].done:
			if time.Since(moved) > stuckAfter {
				return nil, fmt.Errorf("no progress for %s at %d of %d messages", stuckAfter, done, d.stage.o.messages)
			}
			continue
		case last < 0:
			started()
		}
		moved = time.Now()
		u, err := usageOf(d.pid)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample{at: moved, done: done, usage: u})
		if done >= d.stage.o.messages {
			return samples, nil
		}
	}
}

// committed adds up a group's offsets: raw records are produced without
// transactions, so an offset is a count. It is 0 while the group is not there; an
// answer that does not come is asked for again.
func (s *stage) committed(group string) func(context.Context) int64 {
	return func(ctx context.Context) int64 { return s.offsets(ctx, group, s.raw).sum() }
}

// counts are messages by partition.
type counts [partitions]int64

func (c counts) sum() (n int64) {
	for _, of := range c {
		n += of
	}
	return n
}

// offsets are those that a group has committed of a topic; zero where there is
// none, or no answer.
func (s *stage) offsets(ctx context.Context, group, topic string) (at counts) {
	told, err := s.admin.FetchOffsets(ctx, group)
	if err != nil {
		return counts{}
	}
	for n, o := range told[topic] {
		if o.Err == nil && n < partitions {
			at[n] = max(o.At, 0)
		}
	}
	return at
}

// drainWith runs a child until its group has taken all messages, and stops it.
func (s *stage) drainWith(ctx context.Context, group, program string, args, env []string, log string) (figures, error) {
	return s.watched(ctx, s.committed(group), program, args, env, log)
}

// watched runs a child until it has taken all messages, and stops it.
func (s *stage) watched(ctx context.Context, taken func(context.Context) int64, program string, args, env []string, log string) (figures, error) {
	child, err := devservices.StartChild(program, args, env, log)
	if err != nil {
		return figures{}, err //nolint:wrapcheck // a sentence already
	}
	d := &drain{stage: s, taken: taken, pid: child.PID(), ended: child.Done()}
	samples, err := d.watch(ctx, func() {})
	if err != nil {
		_ = child.Kill() // the error that counts is the first
		return figures{}, fmt.Errorf("%w; end of its log:\n%s", err, child.Log())
	}
	if err := child.Stop(ctx); err != nil {
		return figures{}, err //nolint:wrapcheck // likewise
	}
	if code := child.ExitCode(); code != 0 {
		return figures{}, fmt.Errorf("exit code %d after it was asked to end; end of its log:\n%s", code, child.Log())
	}
	return figuresOf(samples), nil
}
