package processor

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// observed shows the client every assignment as a whole. The callbacks tell
// differences only, and one of them can be missing (onRevoked).
type observed struct {
	kgo.GroupBalancer
	c *client
}

// ParseSyncAssignment is called with each answer of the group.
func (o observed) ParseSyncAssignment(b []byte) (map[string][]int32, error) {
	m, err := o.GroupBalancer.ParseSyncAssignment(b)
	if err != nil {
		return nil, fmt.Errorf("reading the group's assignment: %w", err)
	}
	all := make(map[place]bool)
	for topic, ps := range m {
		for _, p := range ps {
			all[place{topic, p}] = true
		}
	}
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.c.synced = all
	return m, nil
}

// onAssigned pauses what came before anything of it is fetched: the position
// rule is applied first, by the session's goroutine. It is called after every
// rebalance, be nothing new assigned.
func (c *client) onAssigned(_ context.Context, cl *kgo.Client, added map[string][]int32) {
	cl.PauseFetchPartitions(added)
	c.at("told of partitions")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined = true
	if c.synced != nil {
		for w := range c.mine {
			if !c.synced[w] {
				c.note(w, false) // taken by a revoke that was not told
			}
		}
	}
	c.append(added, true)
}

// onRevoked makes the batch in hand stop waiting for the ledger. It is called at
// the start of every rebalance; while nothing is taken away the batch goes on.
//
// It is not called for a second revoke before the next End (the session type
// returns early), so no correctness rests on it: the claim in the ledger refuses
// whoever works on a partition that another session took. The next assignment
// tells what was missed: a session that still held a partition of another's
// would claim it back whenever it applies the position rule, and two such
// sessions would refuse each other's chunks for ever.
func (c *client) onRevoked(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	if len(gone) > 0 {
		c.at("told of a revoke")
		c.lose(gone)
	}
}

// onLost is the end of the membership: the next End aborts even if nothing was
// held.
func (c *client) onLost(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	c.at("told of a loss")
	c.lose(gone)
}

func (c *client) lose(gone map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.append(gone, false)
	c.dirty = true
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *client) append(m map[string][]int32, gained bool) {
	for topic, ps := range m {
		for _, p := range ps {
			c.note(place{topic, p}, gained)
		}
	}
}

// note is called with the mutex held.
func (c *client) note(w place, gained bool) {
	c.events = append(c.events, event{w, gained})
	if !gained {
		delete(c.mine, w)
		return
	}
	if c.mine == nil {
		c.mine = make(map[place]bool)
	}
	c.mine[w] = true
}

// take hands over what the callbacks left.
func (c *client) take() (events []event, dirty, joined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events, dirty, joined = c.events, c.dirty, c.joined
	c.events, c.dirty = nil, false
	return events, dirty, joined
}

// during is a context for work on one batch that a revoke cancels.
func (c *client) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = cancel
	if c.dirty {
		cancel()
	}
	return ctx, cancel
}
