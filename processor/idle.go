package processor

import (
	"context"
	"fmt"
)

// tellIdle says once, when all sessions of this process have their partitions,
// that the sessions of all processes together are more than there are raw
// partitions. Each session is a member of the group, so the group knows the sum;
// a process that starts last sees that of all. A failure is no reason to stop
// filtering, and is said at the next start.
func (s *session) tellIdle(ctx context.Context) {
	if s.index != 0 || !s.proc.allJoined() || s.proc.counted.Swap(true) {
		return
	}
	members, partitions, err := s.sums(ctx)
	switch {
	case err != nil:
		s.log.Debug("the sessions of the group were not counted", "error", err)
	case members > partitions:
		s.log.Info("more sessions than raw partitions: some stay idle",
			"sessions", members, "raw_partitions", partitions, "idle", members-partitions, "sessions_here", s.cfg.Sessions)
	}
}

// sums are the sessions of the group and the partitions of its raw topics.
func (s *session) sums(ctx context.Context) (members, partitions int, err error) {
	groups, err := s.kafka.adm.DescribeGroups(ctx, s.cfg.Group)
	if err == nil {
		err = groups.Error()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("describing the group: %w", err)
	}
	all, err := s.kafka.adm.ListTopics(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("listing topics: %w", err)
	}
	for _, t := range all {
		if t.Err == nil && s.cfg.Router.IsRaw(t.Topic) {
			partitions += len(t.Partitions)
		}
	}
	return len(groups[s.cfg.Group].Members), partitions, nil
}

func (p *Processor) allJoined() bool {
	for _, st := range p.states {
		st.mu.Lock()
		joined := st.joined
		st.mu.Unlock()
		if !joined {
			return false
		}
	}
	return true
}
