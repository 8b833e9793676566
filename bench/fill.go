package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

// sink is a raw topic that messages are produced to, as a gateway does: without
// transactions, so an offset counts records alone.
type sink struct {
	client *kgo.Client
	topic  string
	flows  []flow

	failed sync.Once
	err    error // the first refusal; read it behind flush
}

// send hands message n over.
func (k *sink) send(ctx context.Context, n int64) {
	index, _ := placed(n)
	f := &k.flows[index]
	k.client.Produce(ctx, &kgo.Record{Topic: k.topic, Partition: f.partition, Key: []byte(f.scope), Value: value(f, n)},
		func(_ *kgo.Record, err error) {
			if err != nil {
				k.failed.Do(func() { k.err = err })
			}
		})
}

// flush waits until all that was handed over is there.
func (k *sink) flush(ctx context.Context) error {
	if err := errors.Join(k.client.Flush(ctx), k.err); err != nil {
		return fmt.Errorf("producing to %s: %w", k.topic, err)
	}
	return nil
}

// fill makes the raw topic of the phases that drain it.
func (s *stage) fill(ctx context.Context) error {
	if err := s.makeTopic(ctx, s.raw); err != nil {
		return err
	}
	return s.fillUp(ctx, &sink{client: s.client, topic: s.raw, flows: s.flows})
}

// fillUp produces all messages.
func (s *stage) fillUp(ctx context.Context, k *sink) error {
	began := time.Now()
	for n := range s.o.messages {
		k.send(ctx, n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := k.flush(ctx); err != nil {
		return err
	}
	say("filled %s with %d messages in %s", k.topic, s.o.messages, time.Since(began).Round(time.Second))
	return nil
}

func (s *stage) makeTopic(ctx context.Context, name string) error {
	if _, err := s.admin.CreateTopic(ctx, partitions, 1, nil, name); err != nil {
		return fmt.Errorf("making topic %s: %w", name, err)
	}
	return s.awaitTopic(ctx, name, partitions)
}

// awaitTopic waits for a topic that was made: the broker answers before it knows
// it itself.
func (s *stage) awaitTopic(ctx context.Context, name string, count int32) error {
	for {
		if l, err := topics.FetchLayout(ctx, s.admin, name); err == nil && l.Count(name) == count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for topic %s: %w", name, context.Cause(ctx))
		case <-time.After(watchEvery):
		}
	}
}

// dropTopics makes room; what is left is removed with the broker's folder.
func (s *stage) dropTopics(ctx context.Context, names ...string) {
	answers, err := s.admin.DeleteTopics(ctx, names...)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		say("topics were not removed: %v", err)
	}
}
