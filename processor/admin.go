package processor

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// groupOffsets reads the group's committed offsets with RequireStable
// (KIP-447). A partition with an open transaction is left out: its offset is
// about to change, so it is asked for again.
func (s *session) groupOffsets(ctx context.Context, parts []*part) (map[*part]groupOffset, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = s.cfg.Group
	index := make(map[place]*part, len(parts))
	byID := make(map[ledger.Partition]*part, len(parts))
	byTopic := map[string]int{}
	for _, p := range parts {
		index[p.place], byID[p.id] = p, p
		n, ok := byTopic[p.topic]
		if !ok {
			n = len(g.Topics)
			byTopic[p.topic] = n
			t := kmsg.NewOffsetFetchRequestGroupTopic()
			t.Topic, t.TopicID = p.topic, p.id.Topic
			g.Topics = append(g.Topics, t)
		}
		g.Topics[n].Partitions = append(g.Topics[n].Partitions, p.partition)
	}
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, s.kafka.gts.Client())
	if err != nil {
		return nil, fmt.Errorf("reading the group's offsets: %w", err)
	}
	if len(resp.Groups) != 1 {
		return nil, fmt.Errorf("reading the group's offsets: %d groups in the answer", len(resp.Groups))
	}
	if err := kerr.ErrorForCode(resp.Groups[0].ErrorCode); err != nil {
		return nil, fmt.Errorf("reading the group's offsets: %w", err)
	}
	out := make(map[*part]groupOffset, len(parts))
	for _, t := range resp.Groups[0].Topics {
		for _, pr := range t.Partitions {
			p := index[place{t.Topic, pr.Partition}]
			if p == nil {
				p = byID[ledger.Partition{Topic: t.TopicID, Partition: pr.Partition}]
			}
			if p == nil {
				continue
			}
			err := kerr.ErrorForCode(pr.ErrorCode)
			if errors.Is(err, kerr.UnstableOffsetCommit) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading the group's offset of %s/%d: %w", p.topic, p.partition, err)
			}
			out[p] = s.judgeOffset(p, pr.Offset, pr.LeaderEpoch, pr.Metadata)
		}
	}
	return out, nil
}

// judgeOffset tells ours from another tool's: a reset by any tool wipes the
// marker or leaves it naming another offset.
func (s *session) judgeOffset(p *part, offset int64, epoch int32, metadata *string) groupOffset {
	if metadata == nil {
		metadata = new(string)
	}
	return judgeOffset(s.cfg.Ledger.ID, p.id.Topic, offset, epoch, *metadata)
}

func judgeOffset(ledgerID uuid.UUID, topic ledger.TopicID, offset int64, epoch int32, metadata string) groupOffset {
	if offset < 0 {
		return groupOffset{}
	}
	g := groupOffset{found: true, at: ledger.Position{Epoch: epoch, Offset: offset}, marked: topics.Marked(metadata)}
	g.seq, g.ours = topics.Exact(ledgerID, topic, offset, epoch, metadata)
	return g
}

// bounds are the log start and end of raw partitions.
type bounds struct{ start, end kadm.ListedOffsets }

func (s *session) rawBounds(ctx context.Context, parts []*part) (bounds, error) {
	names := topicNames(parts)
	start, err := s.kafka.adm.ListStartOffsets(ctx, names...)
	if err != nil && !partly(err) {
		return bounds{}, fmt.Errorf("listing log starts of %v: %w", names, err)
	}
	end, err := s.kafka.adm.ListEndOffsets(ctx, names...)
	if err != nil && !partly(err) {
		return bounds{}, fmt.Errorf("listing log ends of %v: %w", names, err)
	}
	return bounds{start, end}, nil
}

// partly tells that some brokers answered. What the others hold is missing from
// the answer and is waited for alone; the rest can go on.
func partly(err error) bool {
	var shards *kadm.ShardErrors
	return errors.As(err, &shards) && !shards.AllFailed
}

func topicNames(parts []*part) []string {
	set := map[string]bool{}
	for _, p := range parts {
		set[p.topic] = true
	}
	names := make([]string, 0, len(set))
	for n := range set {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// of is the log start and end of one partition.
func (b bounds) of(p *part) (start, end kadm.ListedOffset, err error) {
	start, ok := b.start.Lookup(p.topic, p.partition)
	end, ok2 := b.end.Lookup(p.topic, p.partition)
	if !ok || !ok2 {
		return start, end, fmt.Errorf("%s/%d: the broker lists no offsets", p.topic, p.partition)
	}
	return start, end, errors.Join(start.Err, end.Err)
}

// resolve clamps an offset into [log start, end] and gives it the epoch of the
// record before it: no position is ever stored with an unknown epoch.
func (s *session) resolve(ctx context.Context, p *part, offset int64, b bounds) (ledger.Position, error) {
	start, end, err := b.of(p)
	if err != nil {
		return ledger.Position{}, err
	}
	offset = min(max(offset, start.Offset), end.Offset)
	if start.Offset == end.Offset {
		return ledger.Position{Epoch: max(end.LeaderEpoch, start.LeaderEpoch, 0), Offset: offset}, nil
	}
	es, err := s.epochs(ctx, p, max(end.LeaderEpoch, start.LeaderEpoch, 0))
	if err != nil {
		return ledger.Position{}, err
	}
	return ledger.Position{Epoch: es.at(max(offset-1, start.Offset)), Offset: offset}, nil
}

// epochEnds lists leader epochs with the offset behind their last record,
// ascending.
type epochEnds []ledger.Position

// at is the epoch of the record at offset.
func (es epochEnds) at(offset int64) int32 {
	i := sort.Search(len(es), func(i int) bool { return es[i].Offset > offset })
	if i == len(es) {
		i--
	}
	if i < 0 {
		return 0
	}
	return es[i].Epoch
}

// epochs asks the leader where each epoch up to last ends, newest first; epochs
// without records are passed over.
func (s *session) epochs(ctx context.Context, p *part, last int32) (epochEnds, error) {
	var es epochEnds
	for e := last; e >= 0; {
		end, known, err := s.epochEnd(ctx, p, e)
		if err != nil {
			return nil, err
		}
		if !known {
			break
		}
		es = append(es, end)
		e = end.Epoch - 1
	}
	sort.Slice(es, func(i, j int) bool { return es[i].Less(es[j]) })
	if len(es) == 0 {
		es = epochEnds{{Epoch: max(last, 0)}}
	}
	return es, nil
}

// epochEnd asks the leader for the latest epoch up to this one that it has
// records of, and where it ends (KIP-320's OffsetForLeaderEpoch).
func (s *session) epochEnd(ctx context.Context, p *part, epoch int32) (end ledger.Position, known bool, err error) {
	var req kadm.OffsetForLeaderEpochRequest
	req.Add(p.topic, p.partition, epoch)
	rs, err := s.kafka.adm.OffsetForLeaderEpoch(ctx, req)
	if err != nil {
		return end, false, fmt.Errorf("asking for the epochs of %s/%d: %w", p.topic, p.partition, err)
	}
	r, ok := rs[p.topic][p.partition]
	if !ok || r.Err != nil {
		return end, false, fmt.Errorf("asking for the epochs of %s/%d: %w", p.topic, p.partition, errors.Join(r.Err, errNoAnswer(ok)))
	}
	return ledger.Position{Epoch: r.LeaderEpoch, Offset: r.EndOffset}, r.LeaderEpoch >= 0 && r.EndOffset >= 0, nil
}

func errNoAnswer(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("no answer for the partition")
}
