package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
	"dedupledger/topics/acl"
)

type routerType = *topics.Router

// errNoRawTopic is what a start waits for when nothing is there to filter.
var errNoRawTopic = errors.New("no raw topic yet")

// awaitKafka waits until a broker answers and a raw topic exists. A right that is
// missing ends the start with the command that grants it, unless it is on a topic
// of a single tenant or flow (endsStart). A raw topic whose
// outputs are missing is not waited for here: the filter holds its partitions,
// with the command that makes them, and filters the others.
func (a *app) awaitKafka(ctx context.Context, r routerType) error {
	// What fails is said at once and tried again here, not in the client.
	opts := append(a.kafkaOptions(), kgo.ClientID("dedup-ledger-start"), kgo.RequestRetries(1))
	cl, err := kgo.NewClient(append(opts, a.ClientOptions...)...)
	if err != nil {
		return fmt.Errorf("preparing the Kafka client: %w", err)
	}
	a.cleanup.onStop("kafka", func(context.Context) error { cl.Close(); return nil })
	look := a.newRights(cl, r)
	var found error
	err = a.retry(ctx, "kafka", func(ctx context.Context) error {
		if err := a.lookAtTopics(ctx, look); err != nil {
			return err
		}
		found = look.check(ctx)
		return look.endsStart(found)
	}, func(err error) bool {
		var lacking *acl.MissingError
		return !errors.As(err, &lacking) && !refused(err)
	})
	if err == nil {
		a.watchRights(ctx, look, found)
		a.watchPinned(ctx, look.adm)
	}
	return err
}

func (a *app) lookAtTopics(ctx context.Context, look *rights) error {
	r := look.router
	all, err := look.list(ctx)
	if err != nil {
		return fmt.Errorf("listing topics at %v: %w", a.Config.Kafka.Brokers, ExplainKafka(a.Config.Kafka, err))
	}
	var raw []string
	for _, name := range all.Names() {
		if r.IsRaw(name) {
			raw = append(raw, name)
		}
	}
	if len(raw) == 0 {
		return fmt.Errorf("%w: none matches topics.raw %q; create one with: dedup topics ensure RAW-TOPIC; if there is one it may be hidden, then grant: %s",
			errNoRawTopic, r.Pattern(), look.who.Commands(acl.Raw(r.RawNames()))[0])
	}
	layout, err := topics.Check(ctx, look.adm, r, raw...)
	if layout == nil {
		return err
	}
	total := 0
	for _, name := range raw {
		total += int(layout.Count(name))
	}
	a.Log.Info("raw topics", "topics", raw, "partitions", total)
	return nil
}
