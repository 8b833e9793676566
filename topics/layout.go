package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

func newLayout() *Layout {
	return &Layout{topics: map[string]topicInfo{}, names: map[ledger.TopicID]string{}, hidden: map[string]bool{}}
}

// LayoutOf is the layout of topics that were listed with what may be done with
// them. Those of which a broker had nothing to tell are left out.
func LayoutOf(listed kadm.TopicDetails) *Layout {
	l := newLayout()
	for name, t := range listed {
		if t.Err == nil {
			l.add(name, infoOf(t))
		}
	}
	return l
}

// FetchLayout asks the brokers, not the client's cache, for the named topics.
// Topics that do not exist are left out; no topic is created by asking.
func FetchLayout(ctx context.Context, adm *kadm.Client, topics ...string) (*Layout, error) {
	l := newLayout()
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

// FetchOutputs is the layout of raw topics and all their outputs. Where names
// depend on scopes, every topic there is has to be looked at.
func FetchOutputs(ctx context.Context, adm *kadm.Client, routes []*Route) (*Layout, error) {
	var names []string
	for _, route := range routes {
		if route.PerScope() {
			return fetchMatching(ctx, adm, routes)
		}
		names = append(append(names, route.Raw), route.Known()...)
	}
	slices.Sort(names)
	return FetchLayout(ctx, adm, slices.Compact(names)...)
}

func fetchMatching(ctx context.Context, adm *kadm.Client, routes []*Route) (*Layout, error) {
	meta, err := freshMetadata(ctx, adm)
	if err != nil {
		return nil, err
	}
	for name := range meta.Topics {
		if !slices.ContainsFunc(routes, func(r *Route) bool { return name == r.Raw || r.MayWrite(name) }) {
			delete(meta.Topics, name)
		}
	}
	l := newLayout()
	if err := l.take(meta); err != nil {
		return nil, err
	}
	// What may not be seen is not among all, and looks as if it were missing.
	var unseen []string
	for _, r := range routes {
		unseen = append(unseen, slices.DeleteFunc(append(r.Known(), r.Raw), l.has)...)
	}
	return l, l.Extend(ctx, adm, unseen...)
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
		l.add(name, infoOf(t))
	}
	return nil
}

func infoOf(t kadm.TopicDetail) topicInfo {
	return topicInfo{
		id: ledger.TopicID(t.ID), partitions: int32(len(t.Partitions)), replicas: replicas(t), //nolint:gosec // Kafka counts them in int32
		allowed: t.AuthorizedOperations,
	}
}

func replicas(t kadm.TopicDetail) int {
	for _, p := range t.Partitions {
		return len(p.Replicas)
	}
	return 0
}

// Outputs are the outputs of a raw topic that are there: those it needs, and
// those of any scope. Sorted.
func (l *Layout) Outputs(route *Route) []string {
	var names []string
	for name := range l.topics {
		if route.MayWrite(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Complete reports whether a raw topic and the outputs it needs are there.
func (l *Layout) Complete(route *Route) bool {
	return !slices.ContainsFunc(append(route.Known(), route.Raw), func(name string) bool { return l.Count(name) == 0 })
}

// Extend asks for topics that may have come up since, and adds those that have.
func (l *Layout) Extend(ctx context.Context, adm *kadm.Client, topics ...string) error {
	more, err := FetchLayout(ctx, adm, topics...)
	if err != nil {
		return err
	}
	for name, info := range more.topics {
		l.add(name, info)
		delete(l.hidden, name)
	}
	maps.Copy(l.hidden, more.hidden)
	return nil
}

// MissingError says which output topics of a raw topic do not exist; Scopes are
// the scopes that they belong to, where a name depends on one.
type MissingError struct {
	Raw     string
	Missing []string
	Scopes  []Scope
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("raw topic %q: output topic missing: %s; create with: dedup topics ensure %s%s",
		e.Raw, strings.Join(e.Missing, ", "), e.Raw, scopeFlags(e.Scopes))
}

// scopeFlags name scopes to `topics ensure`.
func scopeFlags(scopes []Scope) string {
	var b strings.Builder
	for _, s := range scopes {
		b.WriteString(" --scope " + s.String())
	}
	return b.String()
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
	var routes []*Route
	var errs []error
	for _, topic := range raw {
		route, err := r.Route(topic)
		if err != nil {
			errs = append(errs, &RouteError{Raw: topic, Err: err})
			continue
		}
		routes = append(routes, route)
	}
	layout, err := FetchOutputs(ctx, adm, routes)
	if err != nil {
		return nil, err
	}
	for _, route := range routes {
		known := route.Known()
		if denied := layout.denied(route.Raw, known); denied != nil {
			errs = append(errs, denied)
		}
		missing := slices.DeleteFunc(known, func(name string) bool { return layout.has(name) || layout.hidden[name] })
		if len(missing) > 0 {
			errs = append(errs, &MissingError{Raw: route.Raw, Missing: missing})
		}
	}
	return layout, errors.Join(errs...)
}
