package settle

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"dedupledger/ledger"
)

// Word is the operator's word on what nobody can tell any more.
type Word string

// The words; none given is "".
const (
	Committed Word = "committed"
	Aborted   Word = "aborted"
)

// Retire settles the partitions of a topic that is gone, by its id. What was
// decided there and has no output is an orphan: the next copy is NEW.
func (s *Stores) Retire(ctx context.Context, o Order, topic string, id ledger.TopicID, assume Word) (*Report, error) {
	return s.carryOut(ctx, "retire", o, func(ctx context.Context) (*plan, error) {
		names, err := s.topicNames(ctx)
		if err != nil {
			return nil, err
		}
		if name, there := names[id]; there {
			return nil, fmt.Errorf("topic id %s is that of %s, which is there: retire takes a topic that was deleted, or deleted and created again", id, name)
		}
		all, err := s.Ledger.Standings(ctx)
		if err != nil {
			return nil, fmt.Errorf("looking for the positions: %w", err)
		}
		p := &plan{place: topic + "@" + id.String(), detail: map[string]any{}}
		rows, orphans := 0, []Orphan{}
		for _, of := range all {
			if of.Partition.Topic != id {
				continue
			}
			if of.Topic != topic {
				return nil, fmt.Errorf("topic id %s was %s, not %s", id, of.Topic, topic)
			}
			rows++
			if of.Retired {
				continue
			}
			if err := s.retire(ctx, p, of, assume, slices.Contains(slices.Collect(maps.Values(names)), topic)); err != nil {
				return nil, err
			}
			orphans = append(orphans, p.acts[len(p.acts)-1].Orphans...)
		}
		switch {
		case rows == 0:
			return nil, fmt.Errorf("no position of topic id %s: the ids that there are stand in dedup_position (topic_id)", id)
		case len(p.changes) == 0:
			p.acts = []Act{{Partition: topic, Text: fmt.Sprintf("all %d partitions of topic id %s are retired", rows, id)}}
		}
		p.detail = orphansDetail(orphans)
		return p, nil
	})
}

func (s *Stores) retire(ctx context.Context, p *plan, of ledger.Standing, assume Word, again bool) error {
	c := ledger.Change{Partition: of.Partition, Claim: of.Claim, To: &of.D, Retire: true}
	if of.W == of.D {
		p.say(of, "retired: everything decided, up to %d, is committed", of.W.Offset)
		p.changes = append(p.changes, c)
		return nil
	}
	end, err := s.committedEnd(ctx, of, assume, again)
	if err != nil {
		return err
	}
	gap := ledger.Range{From: end, To: of.D}
	if !gap.From.Less(gap.To) {
		p.say(of, "retired: everything decided, up to %d, is committed", of.D.Offset)
		p.changes = append(p.changes, c)
		return nil
	}
	c.Gap = &ledger.Gap{Partition: of.Partition, Range: gap, Kind: ledger.GapRetired}
	orphans, err := s.orphans(ctx, of, gap)
	if err != nil {
		return err
	}
	p.say(of, "retired: %d offsets from %d on were decided and have no output; a gap is recorded", gap.Offsets(), gap.From.Offset)
	p.acts[len(p.acts)-1].Orphans = orphans
	p.changes = append(p.changes, c)
	return nil
}

// committedEnd is behind the last record that is committed. The group's offset
// went with the topic, so the outputs tell, or a person. Only an accepted
// record's output proves by its id which topic it is of: where the topic was made
// again repeats may be the new one's, and the gap begins behind the last that
// was accepted. No row lies in what it has too much.
func (s *Stores) committedEnd(ctx context.Context, of ledger.Standing, assume Word, again bool) (ledger.Position, error) {
	t, err := s.read(ctx, of)
	switch {
	case err != nil:
		return ledger.Position{}, err
	case t.gone == "" && t.found && !again && of.W.Epoch == of.D.Epoch:
		return t.first.Max(ledger.Position{Epoch: of.D.Epoch, Offset: min(t.highest+1, of.D.Offset)}), nil
	case t.gone == "":
		return t.first, nil
	case assume == Committed:
		return of.D, nil
	case assume == Aborted:
		return of.W, nil
	}
	return ledger.Position{}, refuse(of, "whether records %d..%d have outputs cannot be told: %s: add --assume committed (their copies stay duplicates) or --assume aborted (their next copies are NEW)",
		of.W.Offset, of.D.Offset-1, t.gone)
}
