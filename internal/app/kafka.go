package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

type routerType = *topics.Router

// errNoRawTopic is what a start waits for when nothing is there to filter.
var errNoRawTopic = errors.New("no raw topic yet")

// awaitKafka waits until a broker answers and a raw topic exists. A raw topic
// whose outputs are missing is not waited for here: the filter holds its
// partitions, with the command that makes them, and filters the others.
func (a *app) awaitKafka(ctx context.Context, r routerType) error {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(a.Config.Kafka.Brokers...), kgo.ClientID("dedup-ledger-start")}, a.ClientOptions...)...)
	if err != nil {
		return fmt.Errorf("preparing the Kafka client: %w", err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	return a.retry(ctx, "kafka", func(ctx context.Context) error { return a.lookAtTopics(ctx, adm, r) }, func(err error) bool {
		return !errors.Is(err, kerr.SaslAuthenticationFailed) && !errors.Is(err, kerr.ClusterAuthorizationFailed)
	})
}

func (a *app) lookAtTopics(ctx context.Context, adm *kadm.Client, r routerType) error {
	all, err := adm.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("listing topics at %v: %w", a.Config.Kafka.Brokers, err)
	}
	var raw []string
	for _, name := range all.Names() {
		if r.IsRaw(name) {
			raw = append(raw, name)
		}
	}
	if len(raw) == 0 {
		return fmt.Errorf("%w: none matches topics.raw %q; create one with: dedup topics ensure RAW-TOPIC", errNoRawTopic, r.Pattern())
	}
	layout, err := topics.Check(ctx, adm, r, raw...)
	if layout == nil {
		return err
	}
	total := 0
	for _, name := range raw {
		total += int(layout.Count(name))
	}
	if n := a.Config.Processor.Sessions; n > total {
		a.Log.Info("more sessions than raw partitions: some stay idle", "sessions", n, "raw_partitions", total)
	}
	a.Log.Info("raw topics", "topics", raw, "partitions", total)
	return nil
}
