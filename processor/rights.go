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
func (s *session) holdDenied(b *batch, outs []*kgo.Record, denied map[string]acl.Rights) {
	lacks := map[*part]acl.Rights{}
	for i := range b.items {
		p := b.items[i].part
		for _, r := range denied[outs[i].Topic] {
			if !slices.Contains(lacks[p], r) {
				lacks[p] = append(lacks[p], r)
			}
		}
	}
	for p, rights := range lacks {
		if p.phase != held {
			p.lacks = rights
			s.hold(p, heldRights, s.tellDenied(p, rights))
		}
	}
}

// lackedOn are the rights that are missing on topics which a broker did not let
// us write to: WRITE, and what else is gone by now. A name that a record makes is
// looked after by nobody else where the topic may not be seen.
func (s *session) lackedOn(ctx context.Context, denied map[string]bool) map[string]acl.Rights {
	names := slices.Sorted(maps.Keys(denied))
	// Not into the session's own layout: what else has changed is for lookUp.
	now, err := topics.FetchLayout(ctx, s.kafka.adm, names...)
	if err != nil {
		s.log.Debug("rights on outputs were not looked at", "error", err)
	}
	lacks := map[string]acl.Rights{}
	for _, name := range names {
		for _, r := range acl.Output(acl.Named(name)) {
			if r.Operation == acl.Write || err == nil && len(now.Lacks(acl.Rights{r})) > 0 {
				lacks[name] = append(lacks[name], r)
			}
		}
	}
	return lacks
}

// hidden are those of the topics that may not be seen, with the rights on them.
func (s *session) hidden(names []string) map[string]acl.Rights {
	lacks := map[string]acl.Rights{}
	for _, name := range names {
		if s.layout.Hidden(name) {
			lacks[name] = acl.Output(acl.Named(name))
		}
	}
	return lacks
}

// lookForHidden asks for what held partitions wait for and is not among the
// topics that may be seen: without being asked for by its name, what is hidden
// looks as if it were missing.
func (s *session) lookForHidden(ctx context.Context, waiting []*part) error {
	var names []string
	add := func(name string) {
		if s.layout.Count(name) == 0 && !s.layout.Hidden(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range waiting {
		for _, r := range p.lacks {
			add(r.Name.Text)
		}
		if p.needs != nil {
			for _, name := range p.needs.Missing {
				add(name)
			}
		}
	}
	if err := s.layout.Extend(ctx, s.kafka.adm, names...); err != nil {
		return fmt.Errorf("looking for output topics: %w", err)
	}
	return nil
}

// stillLacks are those of the rights that a held partition needs which are still
// missing.
func (s *session) stillLacks(p *part) acl.Rights {
	p.lacks = s.layout.Lacks(p.lacks)
	return p.lacks
}

func (s *session) tellDenied(p *part, lacks acl.Rights) string {
	return (&topics.DeniedError{Raw: p.topic, Rights: lacks}).Error() + "; grant: " + strings.Join(s.cfg.Principal.Commands(lacks), " && ")
}

// stopsFor says whether a partition cannot be worked on for want of a right. One
// that was held because it met a record for a topic that is denied stays so until
// all rights are back; another goes on as long as it meets none.
func (p *part) stopsFor(denied *topics.DeniedError) bool {
	return denied != nil && (denied.Unread || p.phase == held && p.reason == heldRights)
}
