package processor

import (
	"context"
	"errors"
	"fmt"
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
		}
		if it.reg.Account != ledger.UnreadableScope {
			f.Scope = it.reg.Account
		}
		if len(it.reg.Keys) > 0 {
			f.Key = it.reg.Keys[0].Key
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

// lookUp asks for topics and ids of partitions that wait for the rule, and
// returns those whose outputs are all there.
func (s *session) lookUp(ctx context.Context, waiting []*part) ([]*part, error) {
	layout, err := topics.Check(ctx, s.kafka.adm, s.cfg.Router, topicNames(waiting)...)
	if layout == nil {
		return nil, fmt.Errorf("looking at topics: %w", err)
	}
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
	if err := s.proc.names.refresh(ctx, s.kafka.adm, s.cfg.Router); err != nil {
		return nil, err
	}
	var ready []*part
	for _, p := range waiting {
		id, ok := layout.ID(p.topic)
		switch {
		case p.stopsFor(denied[p.topic]):
			s.hold(p, heldRights, denied[p.topic].Error())
		case !ok || p.partition >= layout.Count(p.topic):
			s.hold(p, heldTopics, fmt.Sprintf("raw topic %q is not there", p.topic))
		case faults[p.topic] != nil:
			s.hold(p, heldTopics, faults[p.topic].Error())
		default:
			if was, known := s.ids[p.topic]; known && was != id {
				return nil, fmt.Errorf("%w: %q", errRecreated, p.topic)
			}
			s.ids[p.topic] = id
			p.id = ledger.Partition{Topic: id, Partition: p.partition}
			if s.build[p.topic], err = topics.NewBuilder(s.cfg.Router, layout, p.topic, s.proc.names.of); err != nil {
				return nil, fmt.Errorf("preparing outputs: %w", err)
			}
			ready = append(ready, p)
		}
	}
	return ready, nil
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
func (s *session) outputPlaces(p *part) ([]place, error) {
	outs, err := s.cfg.Router.Outputs(p.topic)
	if err != nil {
		return nil, fmt.Errorf("outputs of %q: %w", p.topic, err)
	}
	var ps []place
	for _, topic := range outs {
		n := s.layout.Count(topic)
		if n == s.layout.Count(p.topic) {
			ps = append(ps, place{topic, p.partition})
			continue
		}
		for i := range n {
			ps = append(ps, place{topic, i})
		}
	}
	return ps, nil
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
		ps, err := s.outputPlaces(p)
		if err != nil {
			return outputBounds{}, err
		}
		all = append(all, ps...)
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
	places, err := o.s.outputPlaces(p)
	if err != nil {
		return outs
	}
	for _, w := range places {
		l, ok := o.ends.Lookup(w.topic, w.partition)
		if !ok || l.Err != nil {
			continue
		}
		if outs[w.topic] == nil {
			outs[w.topic] = map[int32]int64{}
		}
		outs[w.topic][w.partition] = l.Offset
	}
	return outs
}
