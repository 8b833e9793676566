package settle

import (
	"context"
	"fmt"
	"maps"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// heldOutputsGone is the filter's reason for a partition that must learn from
// outputs that retention has taken.
const heldOutputsGone = "outputs_gone"

// Terms are what a person grants to a repair.
type Terms struct {
	Assume    Word // on what was decided and may be committed
	AcceptGap bool // what cannot be had any more is done without
}

// Repair settles held partitions whose outputs are gone: all, those of a raw
// topic, or one (partition -1: all). It says where reading may begin, and by a
// person's word what is committed; the filter then looks again by itself, within
// 10 seconds or at its start, learns what is left and goes on.
func (s *Stores) Repair(ctx context.Context, o Order, topic string, partition int32, t Terms) (*Report, error) {
	return s.carryOut(ctx, "repair", o, func(ctx context.Context) (*plan, error) {
		all, err := s.Ledger.Standings(ctx)
		if err != nil {
			return nil, fmt.Errorf("looking for the positions: %w", err)
		}
		names, err := s.topicNames(ctx)
		if err != nil {
			return nil, err
		}
		p := &plan{place: "*", detail: map[string]any{"assume": string(t.Assume), "acceptGap": t.AcceptGap}}
		if topic != "" {
			p.place = topic
		}
		if partition >= 0 {
			p.place = fmt.Sprintf("%s/%d", topic, partition)
		}
		rows := 0
		for _, of := range all {
			if name, there := names[of.Partition.Topic]; !there || topic != "" && name != topic || partition >= 0 && of.Partition.Partition != partition {
				continue
			}
			rows++
			if of.Held == "" {
				continue
			}
			if of.Held != heldOutputsGone {
				p.say(of, "held for %q, which is not a matter of this command: %s", of.Held, of.HeldWhy)
				continue
			}
			if err := s.repair(ctx, p, of, o, t); err != nil {
				return nil, err
			}
		}
		if topic != "" && rows == 0 {
			return nil, fmt.Errorf("%s has no position: the filter has never had it", p.place)
		}
		if len(p.changes) == 0 && len(p.acts) == 0 {
			p.note = "already done: no partition is held because its outputs are gone"
		}
		return p, nil
	})
}

func (s *Stores) repair(ctx context.Context, p *plan, of ledger.Standing, o Order, t Terms) error {
	if of.Group != s.Group {
		return refuse(of, "it is filtered by group %q, not %q (kafka.group): use that group's configuration", of.Group, s.Group)
	}
	g, err := s.offset(ctx, of.Group, of)
	if err != nil {
		return err
	}
	start, _, err := s.bounds(ctx, of)
	if err != nil {
		return err
	}
	outs, err := s.leftOver(ctx, of)
	if err != nil {
		return err
	}
	c := ledger.Change{Partition: of.Partition, Claim: of.Claim, Held: true, Outputs: outs}
	need := ""
	switch {
	case g.ours && t.Assume == Aborted:
		return refuse(of, "the group's offset proves that everything up to %d is committed: write --assume committed, or leave it out", g.at.Offset)
	case g.ours:
		if !t.AcceptGap {
			need = fmt.Sprintf("records %d..%d are committed, and what they were cannot be read back in full (%s): with --accept-gap it goes on without; copies of what is missing in the ledger are NEW",
				of.W.Offset, g.at.Offset-1, of.HeldWhy)
		}
		p.say(of, "learns what is left of the outputs and goes on at %d", g.at.Offset)
	case t.Assume == Committed:
		c.To = &of.D
		p.say(of, "everything decided, up to %d, counts as committed; goes on at %d or behind the last output that is left", of.D.Offset, of.D.Offset)
	case t.Assume == Aborted && start.Offset > of.W.Offset && !t.AcceptGap:
		need = fmt.Sprintf("records %d..%d were deleted, so they cannot come again: with --accept-gap it goes on behind them, and a gap is recorded", of.W.Offset, start.Offset-1)
	case t.Assume == Aborted:
		p.say(of, "nothing decided from %d on counts as committed: it comes again, behind the last output that is left", of.W.Offset)
	default:
		need = fmt.Sprintf("whether records %d..%d have outputs cannot be told (%s): write --assume committed (they are not handled again; lost if they were not committed) or --assume aborted (they are handled again; doubled if they were)",
			of.W.Offset, of.D.Offset-1, of.HeldWhy)
	}
	switch {
	case need == "":
		p.changes = append(p.changes, c)
	case o.DryRun:
		p.say(of, "%s", need)
	default:
		return refuse(of, "%s", need)
	}
	return nil
}

// leftOver is where the outputs are to be read from: where those of W end, or
// where a log starts that retention has cut since. It says that something was
// taken: that no output is found there is no gap.
func (s *Stores) leftOver(ctx context.Context, of ledger.Standing) (ledger.Outputs, error) {
	outs := ledger.Outputs{}
	for topic, ends := range of.Outputs {
		outs[topic] = maps.Clone(ends)
	}
	layout, err := topics.Check(ctx, s.admin(), s.Router, of.Topic)
	if layout == nil {
		return nil, fmt.Errorf("%s: looking for its outputs: %w", placeOf(of), err)
	}
	route, err := s.Router.Route(of.Topic)
	if err != nil {
		return nil, fmt.Errorf("%s: looking for its outputs: %w", placeOf(of), err)
	}
	for _, topic := range layout.Outputs(route) {
		starts, err := s.admin().ListStartOffsets(ctx, topic)
		if err != nil {
			return nil, fmt.Errorf("listing log starts of %s: %w", topic, err)
		}
		for n, l := range starts[topic] {
			if l.Err != nil {
				return nil, fmt.Errorf("listing the log start of %s/%d: %w", topic, n, l.Err)
			}
			if l.Offset > outs[topic][n] {
				if outs[topic] == nil {
					outs[topic] = map[int32]int64{}
				}
				outs[topic][n] = l.Offset
			}
		}
	}
	if outs[of.Topic] == nil {
		outs[of.Topic] = map[int32]int64{}
	}
	outs[of.Topic][ledger.OutputsTaken] = 1
	return outs, nil
}
