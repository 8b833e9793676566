package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"dedupledger/ledger"
	"dedupledger/processor"
	"dedupledger/topics"
)

// Partition is what the stores tell of one raw partition.
type Partition struct {
	Topic  string
	Number int32
	Row    *ledger.PositionRow // nil: none
	Open   bool                // an open transaction holds the group's offset
	Told   Hold                // what the session that works on it said last
	Offset int64               // the group's; -1: none
	Stand  processor.Standing
	Next   ledger.Position // where consuming goes on: Stand.At, or where the log was cut below it
	// Start and End are the log's; Stable is its last stable offset, behind
	// which an open transaction of a sender lies.
	Start, Stable, End int64
}

// Hold is why a session does not consume a partition, as it told the row; zero
// where it told nothing under its present claim.
type Hold struct{ Reason, Why string }

func (p *Partition) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Number) }

// Stray is a position of a topic that is not there any more.
type Stray struct {
	Topic string
	ID    string
	Count int
	Open  int // partitions with decided records that are not known to be committed
}

// Positions are all of it.
type Positions struct {
	Group      string
	Partitions []Partition // by topic and number
	Strays     []Stray
	Open       []Transaction
}

// Transaction of the filter's that is open.
type Transaction struct {
	ID    string
	Since int64 // ms since 1970, of the coordinator's clock
}

// Stores is where positions are read.
type Stores struct {
	Kafka  *kadm.Client
	Q      Querier
	Ledger uuid.UUID
	Group  string
	Router *topics.Router
}

// picture is what was read of all partitions, in the order of the readings: the
// group's offsets before the rows, so that a row that is behind them is behind.
type picture struct {
	layout  *topics.Layout
	routes  map[string]*topics.Route
	offsets kadm.OffsetResponses
	rows    map[ledger.Partition]*ledger.PositionRow
	holds   map[ledger.Partition]Hold
	names   map[ledger.Partition]string // as the rows name their topics
	log     logs
}

type logs struct{ start, stable, end kadm.ListedOffsets }

func (l logs) bounds(topic string, partition int32) (start, end int64, known bool) {
	s, ok := l.start.Lookup(topic, partition)
	e, ok2 := l.end.Lookup(topic, partition)
	return s.Offset, e.Offset, ok && ok2 && s.Err == nil && e.Err == nil
}

// AskPositions reads and judges the positions of all raw topics.
func (s *Stores) AskPositions(ctx context.Context) (*Positions, error) {
	pic, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	out := &Positions{Group: s.Group, Strays: pic.strays()}
	for _, topic := range pic.raws() {
		id, _ := pic.layout.ID(topic)
		for n := range pic.layout.Count(topic) {
			p, err := s.partition(ctx, pic, topic, ledger.Partition{Topic: id, Partition: n})
			if err != nil {
				return nil, err
			}
			out.Partitions = append(out.Partitions, p)
		}
	}
	out.Open = s.transactions(ctx)
	return out, nil
}

func (p *picture) raws() []string {
	var all []string
	for topic := range p.routes {
		all = append(all, topic)
	}
	slices.Sort(all)
	return all
}

func (s *Stores) read(ctx context.Context) (*picture, error) {
	all, err := s.Kafka.ListTopics(kadm.WithAuthorizedOps(ctx))
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	p := &picture{routes: map[string]*topics.Route{}}
	var routes []*topics.Route
	for _, name := range all.Names() {
		if !s.Router.IsRaw(name) {
			continue
		}
		route, err := s.Router.Route(name)
		if err != nil {
			continue // told with the topics
		}
		p.routes[name] = route
		routes = append(routes, route)
	}
	if p.layout, err = topics.FetchOutputs(ctx, s.Kafka, routes); err != nil {
		return nil, fmt.Errorf("looking at topics: %w", err)
	}
	p.offsets, err = s.Kafka.FetchOffsets(kadm.RequireStable(ctx), s.Group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // none was ever committed
		return nil, fmt.Errorf("reading the group's offsets: %w", err)
	}
	if err := p.readRows(ctx, s.Q); err != nil {
		return nil, err
	}
	return p, p.readLogs(ctx, s.Kafka)
}

const rowsSQL = `
select topic_id, partition, topic, group_name, seq, d_epoch, d_offset, w_epoch, w_offset, outputs::text,
	case when held_claim = claim then coalesce(held, '') else '' end, case when held_claim = claim then coalesce(held_why, '') else '' end
from dedup_position where retired_at is null`

func (p *picture) readRows(ctx context.Context, q Querier) error {
	rows, err := q.Query(ctx, rowsSQL)
	if err != nil {
		return fmt.Errorf("reading the positions: %w", err)
	}
	p.rows, p.names, p.holds = map[ledger.Partition]*ledger.PositionRow{}, map[ledger.Partition]string{}, map[ledger.Partition]Hold{}
	var id uuid.UUID
	var n int32
	var topic, outputs string
	var r ledger.PositionRow
	var hold Hold
	_, err = pgx.ForEachRow(rows, []any{&id, &n, &topic, &r.Group, &r.Seq, &r.D.Epoch, &r.D.Offset, &r.W.Epoch, &r.W.Offset, &outputs, &hold.Reason, &hold.Why}, func() error {
		row := r
		row.Outputs = nil
		at := ledger.Partition{Topic: ledger.TopicID(id), Partition: n}
		p.rows[at], p.names[at], p.holds[at] = &row, topic, hold
		if err := json.Unmarshal([]byte(outputs), &row.Outputs); err != nil {
			return fmt.Errorf("where the outputs of %s end: %w", at, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the positions: %w", err)
	}
	return nil
}

func (p *picture) readLogs(ctx context.Context, adm *kadm.Client) error {
	var names []string
	for raw, route := range p.routes {
		names = append(append(names, raw), p.layout.Outputs(route)...)
	}
	if len(names) == 0 {
		return nil // kadm would take no names for all
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, of := range []struct {
		what string
		list func(context.Context, ...string) (kadm.ListedOffsets, error)
		into *kadm.ListedOffsets
	}{
		{"starts", adm.ListStartOffsets, &p.log.start},
		{"last stable offsets", adm.ListCommittedOffsets, &p.log.stable},
		{"ends", adm.ListEndOffsets, &p.log.end},
	} {
		listed, err := of.list(ctx, names...)
		if err != nil {
			return fmt.Errorf("listing the logs' %s: %w", of.what, err)
		}
		*of.into = listed
	}
	return nil
}

// partition applies the filter's rule to one partition.
func (s *Stores) partition(ctx context.Context, pic *picture, topic string, id ledger.Partition) (Partition, error) {
	p := Partition{Topic: topic, Number: id.Partition, Offset: -1, Row: pic.rows[id], Told: pic.holds[id]}
	about := processor.Picture{Ledger: s.Ledger, Partition: id, Topic: topic, Offset: -1, Row: p.Row, Counts: pic.counts(topic), Log: pic.log.bounds}
	if o, ok := pic.offsets.Lookup(topic, id.Partition); ok {
		switch {
		case errors.Is(o.Err, kerr.UnstableOffsetCommit):
			p.Open = true
		case o.Err != nil:
			return p, fmt.Errorf("reading the group's offset of %s: %w", &p, o.Err)
		default:
			p.Offset, about.Offset, about.Epoch, about.Metadata = o.At, o.At, o.LeaderEpoch, o.Metadata
		}
	}
	start, _ := pic.log.start.Lookup(topic, id.Partition)
	stable, _ := pic.log.stable.Lookup(topic, id.Partition)
	end, _ := pic.log.end.Lookup(topic, id.Partition)
	if err := errors.Join(start.Err, stable.Err, end.Err); err != nil {
		return p, fmt.Errorf("listing the log of %s: %w", &p, err)
	}
	p.Start, p.Stable, p.End = start.Offset, stable.Offset, end.Offset
	p.Stand = about.Stand()
	p.Next = p.Stand.At
	if p.Row == nil || end.LeaderEpoch <= p.Next.Epoch {
		return p, nil
	}
	var req kadm.OffsetForLeaderEpochRequest
	req.Add(topic, id.Partition, p.Next.Epoch)
	answer, err := s.Kafka.OffsetForLeaderEpoch(ctx, req)
	if err != nil {
		return p, fmt.Errorf("asking for the epochs of %s: %w", &p, err)
	}
	if e, ok := answer[topic][id.Partition]; ok && e.Err == nil && e.LeaderEpoch >= 0 && e.EndOffset >= 0 && e.EndOffset < p.Next.Offset {
		p.Next = ledger.Position{Epoch: e.LeaderEpoch, Offset: e.EndOffset}
	}
	return p, nil
}

func (p *picture) counts(raw string) map[string]int32 {
	counts := map[string]int32{raw: p.layout.Count(raw)}
	for _, topic := range p.layout.Outputs(p.routes[raw]) {
		counts[topic] = p.layout.Count(topic)
	}
	return counts
}

// strays are the positions whose topic is not there under its id.
func (p *picture) strays() []Stray {
	var all []Stray
	at := map[ledger.TopicID]int{}
	for id, row := range p.rows {
		if now, ok := p.layout.ID(p.names[id]); ok && now == id.Topic {
			continue
		}
		i, known := at[id.Topic]
		if !known {
			i = len(all)
			at[id.Topic] = i
			all = append(all, Stray{Topic: p.names[id], ID: id.Topic.String()})
		}
		all[i].Count++
		if row.W.Less(row.D) {
			all[i].Open++
		}
	}
	slices.SortFunc(all, func(a, b Stray) int { return slices.Compare([]string{a.Topic, a.ID}, []string{b.Topic, b.ID}) })
	return all
}

// transactions are the filter's own that are open. Not to see them is no fault:
// the offset that one of them holds is told in any case.
func (s *Stores) transactions(ctx context.Context) (open []Transaction) {
	listed, err := s.Kafka.ListTransactions(ctx, nil, []string{"Ongoing", "PrepareCommit", "PrepareAbort"})
	if err != nil {
		return nil
	}
	var ids []string
	listed.Each(func(t kadm.ListedTransaction) {
		if len(t.TxnID) > len(s.Group) && t.TxnID[:len(s.Group)+1] == s.Group+"-" {
			ids = append(ids, t.TxnID)
		}
	})
	if len(ids) == 0 {
		return nil
	}
	described, err := s.Kafka.DescribeTransactions(ctx, ids...)
	if err != nil {
		return nil
	}
	for _, t := range described.Sorted() {
		if t.Err == nil && t.StartTimestamp > 0 {
			open = append(open, Transaction{ID: t.TxnID, Since: t.StartTimestamp})
		}
	}
	return open
}
