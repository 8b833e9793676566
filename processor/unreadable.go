package processor

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// fetchErrors answers what the client could not fetch: per partition the rule
// is applied again; errors of the whole session rebuild it.
func (s *session) fetchErrors(errs []kgo.FetchError) error {
	for _, e := range errs {
		if p := s.parts[place{e.Topic, e.Partition}]; p != nil && e.Topic != "" {
			if err := s.cannotFetch(p, e.Err); err != nil {
				return err
			}
			continue
		}
		var group *kgo.ErrGroupSession
		if errors.As(e.Err, &group) || isFatal(e.Err) {
			return fmt.Errorf("group session: %w", e.Err)
		}
		s.log.Warn("fetching failed", "topic", e.Topic, "partition", e.Partition, "error", e.Err)
	}
	return nil
}

// unread is where fetching a partition has failed.
type unread struct {
	at   ledger.Position
	err  error // nil: it has not
	held bool  // for that
}

func (k unread) why() string {
	return fmt.Sprintf("the record at offset %d cannot be read: %v", k.at.Offset, k.err)
}

// cannotFetch applies the position rule anew, which finds out what has become of
// the log: it may begin later, or be another one. Where it fails at the same place
// again the log is as it was and this record cannot be read, as of a batch that
// was damaged on the broker's disk: then the partition is held, or it would be
// read anew for ever with nothing but a line in the log.
//
// Unless it is the client that holds on to another log:
//
//	the session's client knows all raw topics, by their ids; the session has no
//	partition of this one
//	the topic is deleted and created again, and the client keeps the id
//	a rebalance gives the session a partition of it: the rule makes a position
//	under the new id, the client fetches the old one
//
// The rule sees one id only; the session is rebuilt, with a client that has no past.
func (s *session) cannotFetch(p *part, err error) error {
	was := p.unread
	p.unread = unread{at: p.next, err: err, held: was.err != nil && was.at == p.next}
	if p.unread.held && errors.Is(err, kerr.UnknownTopicID) {
		return fmt.Errorf("%w: %q: %w", errRecreated, p.topic, err)
	}
	if p.unread.held {
		if why := p.unread.why(); was.held && was.why() == why {
			p.reason, p.why = heldUnreadable, why // said already
		}
		s.hold(p, heldUnreadable, p.unread.why())
	} else {
		s.log.Warn("fetching failed; the position is read anew", "topic", p.topic, "partition", p.partition, "error", err)
		p.retry(time.Second)
	}
	s.kafka.pause([]*part{p})
	return nil
}

// seen is what /readyz and the metrics tell. A partition that is held for a record
// that cannot be read, and is tried again just now, is held until that record is
// read: it would seem to be well for a moment of every ten seconds.
func (p *part) seen() (ph phase, reason, why string) {
	if p.unread.held && p.phase != held && p.phase != learning {
		return held, heldUnreadable, p.unread.why()
	}
	return p.phase, p.reason, p.why
}
