package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/ledger"
)

// claim writes a fresh claim into the rows of partitions that are to start, and
// returns those of which the group's offset, read before, is still the last word. Whoever
// has a claim may register, so the order matters:
//
//	filter 1 stands still; its partition goes to filter 0
//	filter 0 registers a batch: R is SEEN of N
//	filter 1 goes on, finds its claim refused and reads the group's offset
//	filter 0 commits the batch; N's window ends
//	filter 1 claims the partition and registers the batch again: R is NEW
//	filter 1 hears that it is a member no more, and commits nothing
//
// R lies in duplicates, and copies of it are SEEN of it: nothing is in clean. So
// between its claim and its first chunk a session asks the group whether it is a
// member still, and then the offset again. What another had under way by then is
// refused by the group (KIP-447), is open and waited for, or is in the offset.
//
// An error leaves the rest waiting; those that were claimed before it go on.
func (s *session) claim(ctx context.Context, ready []*part, offsets map[*part]groupOffset) ([]*part, error) {
	if ours, err := s.member(ctx, ready); !ours {
		return nil, err
	}
	claimed, failed := s.claimAll(ctx, ready)
	if len(claimed) == 0 {
		return nil, failed
	}
	if ours, err := s.member(ctx, claimed); !ours {
		return nil, errors.Join(err, failed)
	}
	same, err := s.unchanged(ctx, claimed, offsets)
	return same, errors.Join(err, failed)
}

func (s *session) claimAll(ctx context.Context, ready []*part) (claimed []*part, err error) {
	for _, p := range ready {
		done, err := s.claimOne(ctx, p)
		if err != nil {
			return claimed, err
		}
		if done {
			claimed = append(claimed, p)
		}
	}
	return claimed, nil
}

func (s *session) positionKey(p *part) ledger.PositionKey {
	return ledger.PositionKey{Partition: p.id, Topic: p.topic, Group: s.cfg.Group}
}

// claimOne holds a partition that another group filters.
func (s *session) claimOne(ctx context.Context, p *part) (bool, error) {
	claim := ledger.NewClaim()
	row, found, err := s.cfg.Ledger.Positions.Claim(ctx, s.positionKey(p), claim)
	var other *ledger.OtherGroupError
	switch {
	case errors.As(err, &other):
		s.hold(p, heldGroup, fmt.Sprintf("filtered by group %q, not %q", other.Owner, s.cfg.Group))
		return false, nil
	case err != nil:
		return false, fmt.Errorf("claiming %s/%d: %w", p.topic, p.partition, err)
	}
	p.claim, p.row = claim, nil
	if found {
		p.row = &row
	}
	s.at("partition claimed")
	return true, nil
}

// member reports whether the group knows this session as the owner of partitions.
// If it does not, they wait: the client hears of it with its own next heartbeat.
func (s *session) member(ctx context.Context, ps []*part) (bool, error) {
	err := s.kafka.heartbeat(ctx, s.cfg.Group)
	if err == nil && s.kafka.has(ps) {
		s.at("membership confirmed")
		return true, nil
	}
	for _, p := range ps {
		p.retry(settleWait)
	}
	if err == nil || staleMember(err) {
		s.log.Debug("partitions wait: the group has given them to another", "partitions", len(ps), "error", err)
		return false, nil
	}
	return false, fmt.Errorf("asking the group for our membership: %w", err)
}

// staleMember reports whether the group says that its generation has gone on
// without this session.
func staleMember(err error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.FencedInstanceID)
}

// unchanged are those partitions whose offset in the group is what it was.
func (s *session) unchanged(ctx context.Context, claimed []*part, before map[*part]groupOffset) (same []*part, err error) {
	now, err := s.groupOffsets(ctx, claimed)
	if err != nil {
		return nil, err
	}
	for _, p := range claimed {
		if g, stable := now[p]; !stable || g != before[p] {
			p.retry(settleWait)
			continue
		}
		same = append(same, p)
	}
	s.at("group offsets confirmed")
	return same, nil
}

// heartbeat asks the coordinator whether this member, of this generation, is one
// of the group. A rebalance under way is no objection: until it is over, what
// members had is theirs.
func (c *client) heartbeat(ctx context.Context, group string) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group = group
	req.MemberID, req.Generation = c.gts.Client().GroupMetadata()
	req.InstanceID = c.instance
	resp, err := req.RequestWith(ctx, c.gts.Client())
	if err != nil {
		return fmt.Errorf("sending a heartbeat: %w", err)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); !errors.Is(err, kerr.RebalanceInProgress) {
		return err //nolint:wrapcheck // the caller says what for
	}
	return nil
}

// has reports whether the client was told of no other owner of partitions.
func (c *client) has(ps []*part) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ps {
		if !c.mine[p.place] {
			return false
		}
	}
	return true
}
