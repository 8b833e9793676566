package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"dedupledger/ledger"
)

// Layout is what the processor has to know of raw topics and their outputs: how
// many partitions there are and which incarnation a name means. It is a picture
// of one moment; a topic that is deleted and made again has another id.
type Layout struct {
	topics map[string]topicInfo
	names  map[ledger.TopicID]string
	hidden map[string]bool // asked for, and denied without a word whether they are there
}

type topicInfo struct {
	id         ledger.TopicID
	partitions int32
	replicas   int
	allowed    []kadm.ACLOperation // to this client; empty where the broker does not tell
}

// Count is the number of partitions, 0 for a topic that is not there.
func (l *Layout) Count(topic string) int32 { return l.topics[topic].partitions }

// ID is Kafka's id of the topic; false for a topic that is not there.
func (l *Layout) ID(topic string) (ledger.TopicID, bool) {
	info, ok := l.topics[topic]
	return info.id, ok
}

// Name is the topic's name, or the text of the id where no topic of the layout
// has it (any more).
func (l *Layout) Name(id ledger.TopicID) string {
	if name, ok := l.names[id]; ok {
		return name
	}
	return id.String()
}

func (l *Layout) has(topic string) bool {
	_, ok := l.topics[topic]
	return ok
}

func (l *Layout) add(topic string, info topicInfo) {
	l.topics[topic] = info
	l.names[info.id] = topic
}

// FetchLayout asks the brokers, not the client's cache, for the named topics.
// Topics that do not exist are left out; no topic is created by asking.
func FetchLayout(ctx context.Context, adm *kadm.Client, topics ...string) (*Layout, error) {
	l := &Layout{topics: map[string]topicInfo{}, names: map[ledger.TopicID]string{}, hidden: map[string]bool{}}
	if len(topics) == 0 {
		return l, nil // kadm would take no names for all
	}
	meta, err := freshMetadata(ctx, adm, topics...)
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		err = l.takeEach(ctx, adm, topics)
	case err == nil:
		err = l.take(meta)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// takeEach asks for one topic after the other: kadm has no answer for any of them
// where one is denied.
func (l *Layout) takeEach(ctx context.Context, adm *kadm.Client, topics []string) error {
	for _, name := range topics {
		meta, err := freshMetadata(ctx, adm, name)
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			l.hidden[name] = true
			continue
		}
		if err != nil {
			return err
		}
		if err := l.take(meta); err != nil {
			return err
		}
	}
	return nil
}

// freshMetadata goes past the client's cache of five seconds: kadm does so when
// authorized operations are asked for. A cached answer could deny a topic that
// was just created, or name the id of one that was just replaced.
func freshMetadata(ctx context.Context, adm *kadm.Client, topics ...string) (kadm.Metadata, error) {
	meta, err := adm.Metadata(kadm.WithAuthorizedOps(ctx), topics...)
	if err != nil {
		return kadm.Metadata{}, fmt.Errorf("asking Kafka for its topics: %w", err)
	}
	return meta, nil
}

func (l *Layout) take(meta kadm.Metadata) error {
	for name, t := range meta.Topics {
		switch {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			continue
		case t.Err != nil:
			return fmt.Errorf("asking Kafka for topic %q: %w", name, t.Err)
		}
		l.add(name, topicInfo{
			id: ledger.TopicID(t.ID), partitions: int32(len(t.Partitions)), replicas: replicas(t), //nolint:gosec // Kafka counts them in int32
			allowed: t.AuthorizedOperations,
		})
	}
	return nil
}

func replicas(t kadm.TopicDetail) int {
	for _, p := range t.Partitions {
		return len(p.Replicas)
	}
	return 0
}

// MissingError says which output topics of a raw topic do not exist.
type MissingError struct {
	Raw     string
	Missing []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("raw topic %q: output topic missing: %s; create with: dedup topics ensure %s",
		e.Raw, strings.Join(e.Missing, ", "), e.Raw)
}

// RouteError says that a raw topic cannot have outputs; it wraps ErrRoute.
type RouteError struct {
	Raw string
	Err error
}

func (e *RouteError) Error() string { return e.Err.Error() }
func (e *RouteError) Unwrap() error { return e.Err }

// Check looks whether the outputs of the raw topics are there and what may be
// done with them, and returns the layout of raw topics and outputs together. The
// error joins, for each raw topic, a *DeniedError where rights are missing, a
// *MissingError where outputs are, and a *RouteError where there can be none: one
// such topic says nothing of the others. Without a layout the error is of the
// asking. A raw topic that is not there is no error: it has nothing to filter yet.
func Check(ctx context.Context, adm *kadm.Client, r *Router, raw ...string) (*Layout, error) {
	outputs := make(map[string][]string, len(raw))
	names := slices.Clone(raw)
	var errs []error
	for _, topic := range raw {
		out, err := r.Outputs(topic)
		if err != nil {
			errs = append(errs, &RouteError{Raw: topic, Err: err})
		}
		outputs[topic] = out
		names = append(names, out...)
	}
	slices.Sort(names)
	layout, err := FetchLayout(ctx, adm, slices.Compact(names)...)
	if err != nil {
		return nil, err
	}
	for _, topic := range raw {
		if denied := layout.denied(topic, outputs[topic]); denied != nil {
			errs = append(errs, denied)
		}
		missing := slices.DeleteFunc(outputs[topic], func(name string) bool { return layout.has(name) || layout.hidden[name] })
		if len(missing) > 0 {
			errs = append(errs, &MissingError{Raw: topic, Missing: missing})
		}
	}
	return layout, errors.Join(errs...)
}
