package processor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
	"dedupledger/topics/acl"
)

// deniedError says which topics a broker did not let us write to.
type deniedError struct {
	topics map[string]bool
	err    error // the first refusal
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("writing to %s: %v", strings.Join(slices.Sorted(maps.Keys(e.topics)), ", "), e.err)
}

func (e *deniedError) Unwrap() error { return e.err }

// refusals collects, from the promises of one transaction, which topics are
// denied. Promises are called one after the other (kgo.Client.Produce).
type refusals struct{ topics map[string]bool }

func (r *refusals) promise(next func(*kgo.Record, error)) func(*kgo.Record, error) {
	return func(rec *kgo.Record, err error) {
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			if r.topics == nil {
				r.topics = map[string]bool{}
			}
			r.topics[rec.Topic] = true
		}
		next(rec, err)
	}
}

// isDenied tells a right that is missing. Somebody took it away while we run, for
// the start has looked at all of them, and may give it back: it is waited for.
func isDenied(err error) bool {
	for _, e := range []error{
		kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed,
		kerr.TransactionalIDAuthorizationFailed, kerr.ClusterAuthorizationFailed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// rightsBack waits for what PostgreSQL denied. The claim that a partition starts
// with needs fewer rights than a registration: without this it would start again
// and again, and readiness with it.
func (s *session) rightsBack(ctx context.Context) error {
	if !s.denied {
		return nil
	}
	if err := s.cfg.Ledger.Rights.Denied(ctx); err != nil {
		return fmt.Errorf("looking whether it is there again: %w", err)
	}
	s.denied = false
	return nil
}

// holdDenied holds the partitions of a batch that have an output for a topic
// which may not be written to. Their records stay uncommitted and keep their
// order; the others of the session go on.
func (s *session) holdDenied(b *batch, outs []*kgo.Record, denied *deniedError) {
	for i := range b.items {
		p, topic := b.items[i].part, outs[i].Topic
		if denied.topics[topic] && p.phase != held {
			s.hold(p, heldRights, (&topics.DeniedError{
				Raw: p.topic, Rights: acl.Rights{{Resource: acl.Topic, Name: acl.Named(topic), Operation: acl.Write}},
			}).Error())
		}
	}
}

// stopsFor says whether a partition cannot be worked on for want of a right. One
// that was held because it met a record for a topic that is denied stays so until
// all rights are back; another goes on as long as it meets none.
func (p *part) stopsFor(denied *topics.DeniedError) bool {
	return denied != nil && (denied.Unread || p.phase == held && p.reason == heldRights)
}
