package settle

import (
	"context"
	"fmt"

	"dedupledger/ledger"
)

// Adopt gives the partitions of a raw topic to the configured group. The group
// that had them must be empty. Where its offset is exact W takes it along, so
// that the new group, which has no offset, learns no more than it must.
func (s *Stores) Adopt(ctx context.Context, o Order, topic string) (*Report, error) {
	return s.carryOut(ctx, "adopt", o, func(ctx context.Context) (*plan, error) {
		id, err := s.topicID(ctx, topic)
		if err != nil {
			return nil, err
		}
		all, err := s.Ledger.Standings(ctx)
		if err != nil {
			return nil, fmt.Errorf("looking for the positions: %w", err)
		}
		p := &plan{place: topic}
		from := map[string]int{}
		rows := 0
		for _, of := range all {
			if of.Partition.Topic != id {
				continue
			}
			of.Topic = topic
			rows++
			if of.Group == s.Group {
				continue
			}
			from[of.Group]++
			c, err := s.adopt(ctx, p, of)
			if err != nil {
				return nil, err
			}
			p.changes = append(p.changes, c)
		}
		switch {
		case rows == 0:
			return nil, fmt.Errorf("%s has no positions: there is nothing to take over, start the filter", topic)
		case len(p.changes) == 0:
			p.acts = []Act{{Partition: topic, Text: fmt.Sprintf("all %d partitions are filtered by group %q", rows, s.Group)}}
		}
		p.detail = map[string]any{"from": from, "to": s.Group}
		return p, nil
	})
}

func (s *Stores) adopt(ctx context.Context, p *plan, of ledger.Standing) (ledger.Change, error) {
	c := ledger.Change{Partition: of.Partition, Claim: of.Claim, Group: s.Group}
	n, err := s.members(ctx, of.Group)
	if err != nil {
		return c, err
	}
	if n > 0 {
		return c, refuse(of, "group %q has %d members: stop every filter of that group (one that was killed is a member until kafka.session_timeout), then try again", of.Group, n)
	}
	g, err := s.offset(ctx, of.Group, of)
	switch {
	case err != nil:
		return c, err
	case g.behind(of):
		return c, refuse(of, "PostgreSQL lost what group %q has committed up to %d: start a filter with that group once, it learns that from the outputs, and then try again", of.Group, g.at.Offset)
	case g.ours && of.W.Less(g.at):
		c.To = &g.at
	}
	p.say(of, "filtered by group %q from now on, not %q; it goes on behind its last committed output", s.Group, of.Group)
	return c, nil
}
