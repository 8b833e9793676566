package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrReplaced says that another process runs with this one's slot: the same
// transactional ids and static members.
var ErrReplaced = errors.New("another process has the same processor.slot and has taken this one's place; give each process a slot of its own")

// How long a fenced session looks for who fenced it, and how often.
const (
	replacedWait = 5 * time.Second
	replacedTick = 100 * time.Millisecond
)

// maybeFenced tells that the transaction is not ours any more. Either it timed
// out, and nobody else is there (KIP-588), or a younger process has the same
// transactional id. A commit that meets the younger one's abort hears
// INVALID_TXN_STATE.
func maybeFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) ||
		errors.Is(err, kerr.InvalidTxnState) || errors.Is(err, kerr.InvalidProducerIDMapping)
}

// orReplaced makes a fencing by another process final. A rebuild would take the
// identity back from the younger process: it opens (fences our producer), we
// rebuild (fence its producer) and join (fence its member), while it joins
// another session's (fences ours), and both end.
func (c *client) orReplaced(ctx context.Context, group, instance string, static bool, err error) error {
	if errors.Is(err, kerr.FencedInstanceID) {
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	if !static || !maybeFenced(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, replacedWait)
	defer cancel()
	t := time.NewTicker(replacedTick)
	defer t.Stop()
	for seen := 0; seen < 2; { // twice: the answer to a join of our own may be on its way
		select {
		case <-ctx.Done():
			return err
		case <-t.C:
		}
		if c.otherMember(ctx, group, instance) {
			seen++
		} else {
			seen = 0
		}
	}
	return fmt.Errorf("%w: %w", ErrReplaced, err)
}

// otherMember tells whether the group's static member of our name is not us.
func (c *client) otherMember(ctx context.Context, group, instance string) bool {
	ours, _ := c.gts.Client().GroupMetadata()
	groups, err := c.adm.DescribeGroups(ctx, group)
	if err != nil || ours == "" {
		return false
	}
	for _, m := range groups[group].Members {
		if m.InstanceID != nil && *m.InstanceID == instance {
			return m.MemberID != ours
		}
	}
	return false
}
