package settle

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/ledger"
	"dedupledger/topics"
)

func (s *Stores) topicNames(ctx context.Context) (map[ledger.TopicID]string, error) {
	all, err := s.admin().ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	names := map[ledger.TopicID]string{}
	for _, t := range all {
		if t.Err == nil {
			names[ledger.TopicID(t.ID)] = t.Topic
		}
	}
	return names, nil
}

// topicID is the present incarnation of a topic.
func (s *Stores) topicID(ctx context.Context, name string) (ledger.TopicID, error) {
	all, err := s.admin().ListTopics(ctx, name)
	if err != nil {
		return ledger.TopicID{}, fmt.Errorf("looking for topic %s: %w", name, err)
	}
	t, ok := all[name]
	switch {
	case !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition):
		return ledger.TopicID{}, fmt.Errorf("raw topic %s is not there, or may not be seen: grant Describe on it, or, if it was deleted, settle it with dedup topics retire %s@TOPIC-ID", name, name)
	case t.Err != nil:
		return ledger.TopicID{}, fmt.Errorf("looking for topic %s: %w", name, t.Err)
	}
	return ledger.TopicID(t.ID), nil
}

// members is how many sessions a group has. One that was killed is a member
// until its session timeout.
func (s *Stores) members(ctx context.Context, group string) (int, error) {
	all, err := s.admin().DescribeGroups(ctx, group)
	if err == nil {
		err = all[group].Err
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking at group %s: %w", group, err)
	}
	g := all[group]
	if n := len(g.Members); n > 0 || g.State == "Empty" || g.State == "Dead" {
		return n, nil
	}
	return 1, nil // it assembles
}

// groupOffset is the group's committed offset of one partition.
type groupOffset struct {
	found, ours bool
	at          ledger.Position
	seq         int64
}

// offset reads it with RequireStable (KIP-447): a transaction that is open on it
// could still change it, and is an error.
func (s *Stores) offset(ctx context.Context, group string, of ledger.Standing) (g groupOffset, err error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	rt := kmsg.NewOffsetFetchRequestGroupTopic()
	rt.Topic, rt.TopicID, rt.Partitions = of.Topic, of.Partition.Topic, []int32{of.Partition.Partition}
	rg.Topics = append(rg.Topics, rt)
	req.Groups = append(req.Groups, rg)
	resp, err := req.RequestWith(ctx, s.Client)
	if err == nil && len(resp.Groups) != 1 {
		err = fmt.Errorf("%d groups in the answer", len(resp.Groups))
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Groups[0].ErrorCode)
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("reading the offsets of group %s: %w", group, err)
	}
	for _, t := range resp.Groups[0].Topics {
		for _, p := range t.Partitions {
			if p.Partition != of.Partition.Partition {
				continue
			}
			err := kerr.ErrorForCode(p.ErrorCode)
			if errors.Is(err, kerr.UnstableOffsetCommit) {
				return g, refuse(of, "a transaction of the filter is open on its offset: wait until it has ended, kafka.transaction_timeout at most, and try again")
			}
			if err != nil {
				return g, fmt.Errorf("reading the offset of group %s: %w", group, err)
			}
			return s.judge(of, p.Offset, p.LeaderEpoch, p.Metadata), nil
		}
	}
	return g, nil
}

// judge tells ours from another tool's, as the filter does.
func (s *Stores) judge(of ledger.Standing, offset int64, epoch int32, metadata *string) groupOffset {
	if offset < 0 {
		return groupOffset{}
	}
	g := groupOffset{found: true, at: ledger.Position{Epoch: epoch, Offset: offset}}
	if metadata == nil {
		return g
	}
	g.seq, g.ours = topics.Exact(s.Ledger.ID(), of.Partition.Topic, offset, epoch, *metadata)
	return g
}

// behind reports whether PostgreSQL lost what the group's offset proves.
func (g groupOffset) behind(of ledger.Standing) bool {
	return g.ours && (of.D.Less(g.at) || of.Seq < g.seq)
}

// bounds are where a raw partition's log starts and ends.
func (s *Stores) bounds(ctx context.Context, of ledger.Standing) (start, end kadm.ListedOffset, err error) {
	return s.listed(ctx, of.Topic, of.Partition.Partition)
}

func (s *Stores) listed(ctx context.Context, topic string, partition int32) (start, end kadm.ListedOffset, err error) {
	starts, err := s.admin().ListStartOffsets(ctx, topic)
	if err != nil {
		return start, end, fmt.Errorf("listing log starts of %s: %w", topic, err)
	}
	ends, err := s.admin().ListEndOffsets(ctx, topic)
	if err != nil {
		return start, end, fmt.Errorf("listing log ends of %s: %w", topic, err)
	}
	start, ok := starts.Lookup(topic, partition)
	end, ok2 := ends.Lookup(topic, partition)
	if !ok || !ok2 || start.Err != nil || end.Err != nil {
		return start, end, fmt.Errorf("%s/%d: the broker lists no offsets: %w", topic, partition, errors.Join(start.Err, end.Err))
	}
	return start, end, nil
}

// resolve gives an offset the epoch of the record before it, as every stored
// position has: with the leader's present one, records of an earlier epoch
// behind it would lie below the position and be passed over.
func (s *Stores) resolve(ctx context.Context, of ledger.Standing, offset int64, start, end kadm.ListedOffset) (ledger.Position, error) {
	at := ledger.Position{Epoch: max(end.LeaderEpoch, start.LeaderEpoch, 0), Offset: offset}
	if start.Offset == end.Offset {
		return at, nil
	}
	before := max(offset-1, start.Offset)
	for e := at.Epoch; e >= 0; {
		var req kadm.OffsetForLeaderEpochRequest
		req.Add(of.Topic, of.Partition.Partition, e)
		rs, err := s.admin().OffsetForLeaderEpoch(ctx, req)
		r := rs[of.Topic][of.Partition.Partition]
		if err == nil {
			err = r.Err
		}
		if err != nil {
			return at, fmt.Errorf("asking for the epochs of %s: %w", placeOf(of), err)
		}
		if r.LeaderEpoch < 0 || r.EndOffset <= before {
			break // the record before is of the epoch asked for last
		}
		at.Epoch, e = r.LeaderEpoch, r.LeaderEpoch-1
	}
	return at, nil
}
