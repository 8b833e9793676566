package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

// errProducer says that the client can produce no more: the session is rebuilt.
var errProducer = errors.New("the producer id is lost")

// offsetsTopic keeps the offsets of groups.
const offsetsTopic = "__consumer_offsets"

// A batch waits so long for the markers of the transaction before it, which the
// coordinator writes behind its answer: milliseconds, and more on a busy broker.
// Then its partitions wait as they do for any open transaction (part.awaitStable),
// and the batch is read again.
const (
	markerWait = 3 * time.Second
	markerLook = 100 * time.Millisecond // at most, between two looks
)

// unended are those places where a transaction of this producer is open although
// none is under way. A new one must not be begun there, nor in the group's offsets: a
// partition knows one open transaction of a producer, and its next marker ends all
// that the producer wrote. So where Kafka has left out the end of a transaction
// (internal/hanging):
//
//	batch 1 is committed, the filter is told so, clean gets no marker
//	batch 2 begins, clean is written to, or only named to the coordinator
//	batch 2 is aborted: its marker aborts batch 1 in clean, whose offsets are committed
//
// The other way round a commit would make visible what was aborted. The group's
// offsets are looked at where the rights allow it (docs/rights.md).
func (c *client) unended(ctx context.Context, group string, outs []place) (map[place]bool, error) {
	id, _, err := c.gts.Client().ProducerID(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("asking for the producer id: %w", context.Cause(ctx))
		}
		return nil, fmt.Errorf("%w: %w", errProducer, err)
	}
	set := kadm.TopicsSet{}
	for _, w := range outs {
		set.Add(w.topic, w.partition)
	}
	if n := c.offsetsCount(ctx); n > 0 {
		set.Add(offsetsTopic, topics.CoordinatorPartition(group, n))
	}
	if len(set) == 0 { // the client would take that for all topics
		return nil, nil //nolint:nilnil // nothing is open nowhere
	}
	told, err := c.adm.DescribeProducers(ctx, set)
	if denied := new(kadm.AuthError); errors.As(err, &denied) && c.offsets > 0 {
		delete(set, offsetsTopic)
		c.offsets = -1
		told, err = c.adm.DescribeProducers(ctx, set)
	}
	if err != nil {
		return nil, fmt.Errorf("describing producers: %w", err)
	}
	open := map[place]bool{}
	for _, t := range told {
		for _, p := range t.Partitions {
			if p.Err != nil {
				return nil, fmt.Errorf("describing the producers of %s/%d: %w", p.Topic, p.Partition, p.Err)
			}
			if mine, ok := p.ActiveProducers[id]; ok && mine.CurrentTxnStartOffset >= 0 {
				open[place{p.Topic, p.Partition}] = true
			}
		}
	}
	return open, nil
}

// offsetsCount is how many partitions the offsets of groups have; not above 0
// where the rights do not let it be seen.
func (c *client) offsetsCount(ctx context.Context) int {
	if c.offsets == 0 {
		all, err := c.adm.ListTopicsWithInternal(ctx, offsetsTopic)
		if err != nil && !errors.As(err, new(*kadm.AuthError)) {
			return 0
		}
		c.offsets = -1
		if t := all[offsetsTopic]; t.Err == nil && len(t.Partitions) > 0 {
			c.offsets = len(t.Partitions)
		}
	}
	return c.offsets
}

// awaitEnded returns when nothing of before is open where a batch goes; false:
// it did not end soon, and the position rule is to wait for it.
func (s *session) awaitEnded(ctx context.Context, outs []place) (bool, error) {
	began, wait := time.Now(), time.Millisecond
	for {
		open, err := s.kafka.unended(ctx, s.cfg.Group, outs)
		if err != nil || len(open) == 0 {
			return err == nil, err
		}
		if time.Since(began) > markerWait {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(wait):
		}
		wait = min(3*wait, markerLook)
	}
}

// placesOf are the partitions that records go to.
func placesOf(outs []*kgo.Record) (all []place) {
	seen := make(map[place]bool, 8)
	for _, r := range outs {
		if w := (place{r.Topic, r.Partition}); !seen[w] {
			seen[w] = true
			all = append(all, w)
		}
	}
	return all
}

// anyOf reports whether a transaction is open where outputs of the partition can go.
func anyOf(open map[place]bool, outs []place) bool {
	for _, w := range outs {
		if open[w] {
			return true
		}
	}
	for w := range open {
		if w.topic == offsetsTopic {
			return true
		}
	}
	return false
}
