package settle

import (
	"context"
	"fmt"

	"dedupledger/ledger"
)

// Skip goes on at an offset: what lies between the position and that gets no
// output, ever, and is recorded as a gap. The group's own offset stays where it
// is; the position of the row is the later one, and stands.
func (s *Stores) Skip(ctx context.Context, o Order, topic string, partition int32, to int64) (*Report, error) {
	return s.carryOut(ctx, "skip", o, func(ctx context.Context) (*plan, error) {
		id, err := s.topicID(ctx, topic)
		if err != nil {
			return nil, err
		}
		of, err := s.standing(ctx, ledger.Partition{Topic: id, Partition: partition}, topic)
		if err != nil {
			return nil, err
		}
		return s.skip(ctx, of, to)
	})
}

// standing is the row of one partition.
func (s *Stores) standing(ctx context.Context, of ledger.Partition, topic string) (ledger.Standing, error) {
	all, err := s.Ledger.Standings(ctx)
	if err != nil {
		return ledger.Standing{}, fmt.Errorf("looking for the position: %w", err)
	}
	for _, row := range all {
		if row.Partition == of {
			row.Topic = topic
			return row, nil
		}
	}
	return ledger.Standing{}, fmt.Errorf("%s/%d has no position yet: the filter has never had it, so start the filter first", topic, of.Partition)
}

func (s *Stores) skip(ctx context.Context, of ledger.Standing, to int64) (*plan, error) {
	p := &plan{place: placeOf(of)}
	if of.Group != s.Group {
		return nil, refuse(of, "it is filtered by group %q, not %q (kafka.group): use that group's configuration, or take it over with: dedup topics adopt %s --reason ...", of.Group, s.Group, of.Topic)
	}
	start, end, err := s.bounds(ctx, of)
	if err != nil {
		return nil, err
	}
	if to > end.Offset {
		return nil, refuse(of, "--to %d lies behind the log end %d: write at most that", to, end.Offset)
	}
	at, err := s.resolve(ctx, of, to, start, end)
	if err != nil {
		return nil, err
	}
	if !of.W.Less(at) {
		p.say(of, "it goes on at %d, which is not before %d", of.W.Offset, to)
		return p, nil
	}
	from, err := s.exact(ctx, of)
	if err != nil {
		return nil, err
	}
	if !from.Less(at) {
		p.say(of, "it goes on at %d, which is not before %d", from.Offset, to)
		return p, nil
	}
	gap := ledger.Range{From: from, To: at}
	orphans, err := s.orphans(ctx, of, gap)
	if err != nil {
		return nil, err
	}
	p.say(of, "goes on at %d instead of %d: %d offsets get no output; a gap is recorded", to, from.Offset, gap.Offsets())
	p.acts[0].Orphans = orphans
	p.detail = orphansDetail(orphans)
	p.detail["from"], p.detail["to"] = gap.From.String(), gap.To.String()
	p.changes = []ledger.Change{{
		Partition: of.Partition, Claim: of.Claim, Held: of.Held != "", To: &at,
		Gap: &ledger.Gap{Partition: of.Partition, Range: gap, Kind: ledger.GapSkip},
	}}
	return p, nil
}

// exact is where everything before is committed and nothing behind is: what a
// gap may begin at. It needs that nobody works on the partition: its group has
// no member, or the session that has it holds it. Both are looked at after the
// row was read, so that a session that comes in between has changed the claim.
func (s *Stores) exact(ctx context.Context, of ledger.Standing) (ledger.Position, error) {
	if err := s.free(ctx, of, of.Group); err != nil {
		return ledger.Position{}, err
	}
	g, err := s.offset(ctx, of.Group, of)
	switch {
	case err != nil:
		return ledger.Position{}, err
	case g.behind(of):
		return ledger.Position{}, refuse(of, "PostgreSQL lost what group %q has committed up to %d: start the filter, it learns that from the outputs, and then try again", of.Group, g.at.Offset)
	case g.ours:
		return of.W.Max(g.at), nil
	}
	told, err := s.read(ctx, of)
	switch {
	case err != nil:
		return ledger.Position{}, err
	case told.gone != "":
		return ledger.Position{}, refuse(of, "the group's offset is not the filter's, and retention has taken outputs (%s): settle that first with: dedup repair %s --assume committed|aborted --reason ...", told.gone, placeOf(of))
	case told.found:
		return ledger.Position{}, refuse(of, "the group's offset is not the filter's, and outputs behind the position are committed, up to record %d: start the filter, it learns that, and then try again", told.highest)
	}
	return of.W, nil
}

// free refuses while somebody may work on the partition.
func (s *Stores) free(ctx context.Context, of ledger.Standing, group string) error {
	if of.Held != "" {
		return nil
	}
	n, err := s.members(ctx, group)
	if err != nil {
		return err
	}
	if n > 0 {
		return refuse(of, "group %q has %d members and does not hold the partition: stop every filter of the group (one that was killed is a member until kafka.session_timeout), then try again", group, n)
	}
	return nil
}
