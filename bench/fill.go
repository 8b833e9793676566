package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

// fill makes the raw topic and produces all messages, as a gateway does:
// without transactions, so an offset counts records alone.
func (s *stage) fill(ctx context.Context) error {
	if err := s.makeTopic(ctx, s.raw); err != nil {
		return err
	}
	began := time.Now()
	var failed struct {
		sync.Once
		err error
	}
	for n := range s.o.messages {
		index, _ := placed(n)
		f := &s.flows[index]
		s.client.Produce(ctx, &kgo.Record{Topic: s.raw, Partition: f.partition, Key: []byte(f.scope), Value: value(f, n)},
			func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Do(func() { failed.err = err })
				}
			})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := s.client.Flush(ctx); err != nil {
		return fmt.Errorf("filling the raw topic: %w", err)
	}
	if failed.err != nil {
		return fmt.Errorf("filling the raw topic: %w", failed.err)
	}
	say("filled %s with %d messages in %s", s.raw, s.o.messages, time.Since(began).Round(time.Second))
	return nil
}

func (s *stage) makeTopic(ctx context.Context, name string) error {
	if _, err := s.admin.CreateTopic(ctx, partitions, 1, nil, name); err != nil {
		return fmt.Errorf("making topic %s: %w", name, err)
	}
	// The broker answers before it knows the topic itself.
	for {
		if l, err := topics.FetchLayout(ctx, s.admin, name); err == nil && l.Count(name) == partitions {
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
