package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"dedupledger/internal/rules"
	"dedupledger/ledger"
	"dedupledger/ledger/cold"
	"dedupledger/topics"
)

// window is how many messages are laid out at a time, while the clock stands:
// making a registration of a message is the filter's work, not the ledger's.
const window = 100_000

// register gives the topic's records to the ledger, on so many connections.
// Each has its own scopes, as a session has its own partitions.
func (s *stage) register(ctx context.Context, connections int) (figures, error) {
	db, err := s.database(ctx, fmt.Sprintf("register_%d_%d", connections, time.Now().UnixNano()))
	if err != nil {
		return figures{}, err
	}
	defer s.drop(ctx, db)
	l, err := cold.Open(ctx, cold.Config{URL: db.AppURL, MaxConns: int32(connections), ApplicationName: "bench"})
	if err != nil {
		return figures{}, err //nolint:wrapcheck // a sentence already
	}
	defer l.Close()
	keyer, err := newKeyer()
	if err != nil {
		return figures{}, err
	}
	writers := make([]*writer, connections)
	for i := range writers {
		if writers[i], err = s.newWriter(ctx, l, i, connections); err != nil {
			return figures{}, err
		}
	}
	var took time.Duration
	for from := int64(0); from < s.o.messages; from += window {
		for _, w := range writers {
			w.layOut(from, min(from+window, s.o.messages), keyer)
		}
		began := time.Now()
		if err := together(ctx, writers); err != nil {
			return figures{}, err
		}
		took += time.Since(began)
	}
	return timed(s.o.messages, took), s.checkAccounts(ctx, db, s.o.messages)
}

func together(ctx context.Context, writers []*writer) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range writers {
		g.Go(func() error { return w.run(ctx) })
	}
	return g.Wait() //nolint:wrapcheck // a sentence already
}

func timed(messages int64, took time.Duration) figures {
	return figures{Messages: messages, Seconds: took.Seconds(), PerSecond: float64(messages) / took.Seconds()}
}

// newKeyer finds keys as the filter does by default.
func newKeyer() (rules.Keyer, error) {
	set, err := rules.New(nil, true)
	if err != nil {
		return rules.Keyer{}, fmt.Errorf("compiling the built-in rules: %w", err)
	}
	return rules.NewKeyer(set), nil
}

// registration is what the filter makes of message n, which lies at offset in
// the partition of its flow.
func registration(f *flow, n, offset int64, keyer rules.Keyer) ledger.Registration {
	v := value(f, n)
	r := ledger.Registration{
		Origin:  ledger.Origin{Gate: ledger.GateKafka, Topic: benchTopic(), Partition: f.partition, Offset: offset},
		Account: f.scope, Bytes: int64(len(v)), PayloadSHA256: sha256.Sum256(v), HashMode: ledger.HashRaw,
	}
	scope, err := topics.ParseScope(f.scope)
	if err != nil {
		r.Reason = topics.CodeScopeMalformed
		return r
	}
	keyed := keyer.Key(scope, v, func(string, int) ([]byte, bool) { return nil, false })
	if keyed.Code != "" {
		r.Reason = keyed.Code
		return r
	}
	r.Keys = []ledger.Key{keyed.Key}
	return r
}
