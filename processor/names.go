package processor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// namesEvery bounds how often an unknown topic id makes the brokers be asked.
const namesEvery = 30 * time.Second

// names tells the present names of raw topics: the first record of a key may
// lie in a topic that another session or process reads. Shared by the sessions.
type names struct {
	mu      sync.RWMutex
	byID    map[ledger.TopicID]string
	missing bool // an id was asked for that is not there
	asked   time.Time
}

func newNames() *names { return &names{byID: map[ledger.TopicID]string{}} }

// of is the name, or the id's text for a topic that is gone or not known yet.
func (n *names) of(id ledger.TopicID) string {
	n.mu.RLock()
	name, ok := n.byID[id]
	n.mu.RUnlock()
	if ok {
		return name
	}
	n.mu.Lock()
	n.missing = true
	n.mu.Unlock()
	return id.String()
}

// catchUp asks again when an unknown id was met, but not too often.
func (n *names) catchUp(ctx context.Context, adm *kadm.Client, r *topics.Router) error {
	n.mu.RLock()
	due := n.missing && time.Since(n.asked) > namesEvery
	n.mu.RUnlock()
	if !due {
		return nil
	}
	return n.refresh(ctx, adm, r)
}

// refresh reads the names of all raw topics.
func (n *names) refresh(ctx context.Context, adm *kadm.Client, r *topics.Router) error {
	// Not from the client's cache, which kadm goes past then: it also holds topics
	// that were asked for by name and denied, and would have no list for them.
	all, err := adm.ListTopics(kadm.WithAuthorizedOps(ctx))
	if err != nil {
		return fmt.Errorf("listing raw topics: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.missing, n.asked = false, time.Now()
	for _, t := range all {
		if t.Err == nil && r.IsRaw(t.Topic) {
			n.byID[ledger.TopicID(t.ID)] = t.Topic
		}
	}
	return nil
}
