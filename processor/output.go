package processor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// errRecreated says that a raw topic was deleted and made again. The client
// reads one incarnation for as long as it lives, so the session is rebuilt.
var errRecreated = errors.New("raw topic was created again under the same name")

// outputs builds the one output of each record, in the order of the batch.
func (s *session) outputs(b *batch) []*kgo.Record {
	outs := make([]*kgo.Record, len(b.items))
	for i := range b.items {
		it := &b.items[i]
		f := topics.Facts{
			Origin: it.reg.Origin, Verdict: it.verdict, Reason: it.reason,
			PayloadSHA256: it.reg.PayloadSHA256, Entry: it.res.Entry, Repeat: it.res.Repeat,
			Omit: omits(it.verdict, it.res, it.noPayload, s.cfg.PayloadCopies), Observed: it.observed(),
		}
		if it.reg.Account != ledger.UnreadableScope {
			f.Scope = it.reg.Account
		}
		if len(it.reg.Keys) > 0 {
			f.Key, f.Aliases, f.Matched = it.reg.Keys[0].Key, it.reg.Keys[1:], it.res.Matched
		}
		build := s.build[it.part.topic]
		if s.rejected[it.reg.Origin].reference {
			outs[i] = build.Reference(it.rec, &f, time.Now())
			continue
		}
		outs[i] = build.Output(it.rec, &f)
	}
	return outs
}

// complete builds the outputs of a batch, or holds the partitions that need a
// topic that is not there, or may not be seen: its name depends on the record's
// scope and nobody has made it yet, or granted it, or it was deleted. Then nothing
// of the batch is produced, and the partitions that are left go on with the next.
func (s *session) complete(ctx context.Context, b *batch) (outs []*kgo.Record, held bool, err error) {
	outs = s.outputs(b)
	unknown := s.unknown(outs)
	if len(unknown) == 0 {
		return outs, false, nil
	}
	if err := s.layout.Extend(ctx, s.kafka.adm, unknown...); err != nil {
		return nil, false, fmt.Errorf("looking for output topics: %w", err)
	}
	outs = s.outputs(b)
	unknown = s.unknown(outs)
	if len(unknown) == 0 {
		return outs, false, nil
	}
	s.resync("an output topic is missing")
	s.holdDenied(b, outs, s.hidden(unknown))
	for p, m := range s.missing(b, outs) {
		p.needs = m
		s.hold(p, heldTopics, m.Error())
	}
	return nil, true, nil
}

// unknown are the topics of outputs that the layout does not have.
func (s *session) unknown(outs []*kgo.Record) (names []string) {
	for _, out := range outs {
		if s.layout.Count(out.Topic) == 0 && !slices.Contains(names, out.Topic) {
			names = append(names, out.Topic)
		}
	}
	return names
}

func (s *session) missing(b *batch, outs []*kgo.Record) map[*part]*topics.MissingError {
	missing := map[*part]*topics.MissingError{}
	for i, out := range outs {
		it := &b.items[i]
		m := missing[it.part]
		if s.layout.Count(out.Topic) > 0 || s.layout.Hidden(out.Topic) || m != nil && slices.Contains(m.Missing, out.Topic) {
			continue
		}
		if m == nil {
			m = &topics.MissingError{Raw: it.part.topic}
			missing[it.part] = m
		}
		m.Missing = append(m.Missing, out.Topic)
		if scope, err := topics.ParseScope(it.reg.Account); err == nil && !slices.Contains(m.Scopes, scope) {
			m.Scopes = append(m.Scopes, scope)
		}
	}
	return missing
}

// stillAbsent reports whether what a held partition needs is still missing.
func (s *session) stillAbsent(p *part) bool {
	if p.needs != nil && slices.ContainsFunc(p.needs.Missing, func(topic string) bool { return s.layout.Count(topic) == 0 && !s.layout.Hidden(topic) }) {
		return true
	}
	p.needs = nil
	return false
}

// lookUp asks for topics and ids of the session's partitions, and returns those
// that wait for the rule and whose outputs are all there.
func (s *session) lookUp(ctx context.Context, waiting []*part) ([]*part, error) {
	all := make([]*part, 0, len(s.parts))
	for _, p := range s.parts {
		all = append(all, p)
	}
	layout, err := topics.Check(ctx, s.kafka.adm, s.cfg.Router, topicNames(all)...)
	if layout == nil {
		return nil, fmt.Errorf("looking at topics: %w", err)
	}
	was := s.layout
	s.layout = layout
	faults := map[string]error{} // by raw topic
	denied := map[string]*topics.DeniedError{}
	for err := range joined(err) {
		var missing *topics.MissingError
		var route *topics.RouteError
		var lacking *topics.DeniedError
		switch {
		case errors.As(err, &missing):
			faults[missing.Raw] = err
		case errors.As(err, &route):
			faults[route.Raw] = err
		case errors.As(err, &lacking):
			denied[lacking.Raw] = lacking
		}
	}
	if err := s.lookForHidden(ctx, waiting); err != nil {
		return nil, err
	}
	if err := s.proc.names.refresh(ctx, s.kafka.adm, s.cfg.Router); err != nil {
		return nil, err
	}
	if err := s.follow(was, faults); err != nil {
		return nil, err
	}
	var ready []*part
	for _, p := range waiting {
		id, ok := layout.ID(p.topic)
		switch {
		case p.stopsFor(denied[p.topic]):
			s.hold(p, heldRights, s.tellDenied(p, denied[p.topic].Rights))
		case unroutable(faults[p.topic]): // and not looked for, so not in the layout
			s.hold(p, heldTopics, faults[p.topic].Error())
		case !ok || p.partition >= layout.Count(p.topic):
			s.hold(p, heldTopics, fmt.Sprintf("raw topic %q is not there", p.topic))
		case len(s.stillLacks(p)) > 0:
			s.hold(p, heldRights, s.tellDenied(p, p.lacks))
		case faults[p.topic] != nil:
			s.hold(p, heldTopics, faults[p.topic].Error())
		case s.stillAbsent(p):
			s.hold(p, heldTopics, p.needs.Error())
		default:
			if was, known := s.ids[p.topic]; known && was != id {
				return nil, fmt.Errorf("%w: %q", errRecreated, p.topic)
			}
			s.ids[p.topic] = id
			p.id = ledger.Partition{Topic: id, Partition: p.partition}
			if s.routes[p.topic] == nil {
				if err := s.prepare(p.topic); err != nil {
					return nil, err
				}
				s.warnCounts(nil, s.routes[p.topic])
			}
			ready = append(ready, p)
		}
	}
	s.warnMisfits(ctx)
	return ready, nil
}

func unroutable(err error) bool {
	_, ok := errors.AsType[*topics.RouteError](err)
	return ok
}

// follow takes a new picture of the topics up for the raw topics that are
// filtered already. Where partition counts have changed, or an output is gone,
// outputs may go elsewhere from now on: the partitions stop, so that the row
// tells of the new places before the first record goes there.
func (s *session) follow(was *topics.Layout, faults map[string]error) error {
	for raw, route := range s.routes {
		usable := faults[raw] == nil && s.layout.Complete(route)
		same := usable && was != nil && sameCounts(was, s.layout, route)
		if usable {
			if err := s.prepare(raw); err != nil {
				return err
			}
			s.warnCounts(was, route)
		}
		if same {
			continue
		}
		var stopped []*part
		for _, p := range s.parts {
			if p.topic == raw && p.phase == running {
				p.retry(0)
				stopped = append(stopped, p)
			}
		}
		s.kafka.pause(stopped)
	}
	return nil
}

// sameCounts reports whether the outputs of a raw topic go where they went. A
// topic that has come up since changes nothing for the others.
func sameCounts(was, is *topics.Layout, route *topics.Route) bool {
	for _, topic := range append(was.Outputs(route), route.Raw) {
		if was.Count(topic) != is.Count(topic) {
			return false
		}
	}
	return true
}

// warnCounts tells, once a change, of a clean topic whose partitions are not as
// many as its raw topic's.
func (s *session) warnCounts(was *topics.Layout, route *topics.Route) {
	raw, clean := s.layout.Count(route.Raw), s.layout.Count(route.Clean)
	if raw == clean || was != nil && was.Count(route.Raw) == raw && was.Count(route.Clean) == clean {
		return
	}
	s.proc.warnOnce(fmt.Sprintf("%s %d %d", route.Raw, raw, clean), func() {
		small, count := topics.Grow(route.Raw, raw, route.Clean, clean)
		s.log.Warn("a clean topic has another number of partitions than its raw topic: outputs go by record key, and the order of a raw partition is kept per key only",
			"topic", route.Raw, "partitions", raw, "clean", route.Clean, "clean_partitions", clean,
			"repair", topics.GrowCommand(s.cfg.Brokers, small, count))
	})
}

// warnMisfits tells, each once, of outputs that do not fit their raw topics: by
// their partitions or by the records they take. Whether clean has as many
// partitions is told by warnCounts. It is no reason not to filter, nor is a
// failure to look.
func (s *session) warnMisfits(ctx context.Context) {
	routes := slices.Collect(maps.Values(s.routes))
	found, err := s.layout.Misfits(ctx, s.kafka.adm, s.cfg.Brokers, s.cfg.MaxRecord, routes...)
	if err != nil {
		s.log.Debug("the settings of outputs were not looked at", "error", err)
	}
	for _, m := range found {
		s.proc.warnOnce(m.Topic+" "+m.Text, func() {
			s.log.Warn("an output topic does not fit its raw topics", "topic", m.Topic, "why", m.Text, "repair", m.Repair)
		})
	}
}

// prepare makes what builds the outputs of a raw topic.
func (s *session) prepare(raw string) (err error) {
	if s.routes[raw], err = s.cfg.Router.Route(raw); err != nil {
		return fmt.Errorf("outputs of %q: %w", raw, err)
	}
	if s.build[raw], err = topics.NewBuilder(s.routes[raw], s.layout, s.proc.names.of); err != nil {
		return fmt.Errorf("preparing outputs: %w", err)
	}
	return nil
}

// joined lists the errors of a join, or the error itself.
func joined(err error) func(func(error) bool) {
	return func(yield func(error) bool) {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if !yield(e) {
					return
				}
			}
			return
		}
		if err != nil {
			yield(err)
		}
	}
}

// outputPlaces are the output partitions that can hold outputs of a raw
// partition: its own number where the counts agree, else any.
func (s *session) outputPlaces(p *part) []place {
	var ps []place
	for _, topic := range s.layout.Outputs(s.routes[p.topic]) {
		n := s.layout.Count(topic)
		if n == s.layout.Count(p.topic) {
			ps = append(ps, place{topic, p.partition})
			continue
		}
		for i := range n {
			ps = append(ps, place{topic, i})
		}
	}
	return ps
}

// outputBounds are the last stable offsets of all outputs: whatever a session
// produces from now on lies at or behind them.
type outputBounds struct {
	s    *session
	ends kadm.ListedOffsets
}

func (s *session) outputEnds(ctx context.Context, parts []*part) (outputBounds, error) {
	var all []place
	for _, p := range parts {
		all = append(all, s.outputPlaces(p)...)
	}
	ends, err := s.kafka.adm.ListCommittedOffsets(ctx, placeTopics(all)...)
	if err != nil && !partly(err) {
		return outputBounds{}, fmt.Errorf("listing ends of outputs: %w", err)
	}
	return outputBounds{s, ends}, nil
}

// of is the outputs' ends for one raw partition. One that cannot be told is
// left out: reading back would start at its log start.
func (o outputBounds) of(p *part) ledger.Outputs {
	outs := ledger.Outputs{}
	for _, w := range o.s.outputPlaces(p) {
		l, ok := o.ends.Lookup(w.topic, w.partition)
		if !ok || l.Err != nil {
			continue
		}
		if outs[w.topic] == nil {
			outs[w.topic] = map[int32]int64{}
		}
		outs[w.topic][w.partition] = l.Offset
	}
	o.s.counts(p).addTo(outs)
	return outs
}

// partitionCounts are those of a raw topic and its outputs.
type partitionCounts map[string]int32

func (s *session) counts(p *part) partitionCounts {
	c := partitionCounts{p.topic: s.layout.Count(p.topic)}
	for _, topic := range s.layout.Outputs(s.routes[p.topic]) {
		c[topic] = s.layout.Count(topic)
	}
	return c
}

// addTo notes the counts where outputs end: learning tells by them whether
// outputs can have gone elsewhere since.
func (c partitionCounts) addTo(outs ledger.Outputs) {
	for topic, n := range c {
		if outs[topic] == nil {
			outs[topic] = map[int32]int64{}
		}
		outs[topic][ledger.OutputCount] = int64(n)
	}
}

// grown reports whether a topic's partitions are not those of then; false where
// nothing is known of then.
func (c partitionCounts) grown(then ledger.Outputs, topic string) bool {
	n, known := then[topic][ledger.OutputCount]
	return known && n != int64(c[topic])
}
