package hanging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/topics"
)

const (
	offsetsTopic = "__consumer_offsets"
	stateTopic   = "__transaction_state"
)

// Place is a partition that a transaction is open on.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"` // offset of its first record there

	coordinator int32 // epoch of the coordinator that the leader knows
}

// Transaction is one that hangs.
type Transaction struct {
	ID       string // transactional id
	Producer int64
	Epoch    int16
	Decision Decision
	Places   []Place // by topic and partition
}

// Options say where to look.
type Options struct {
	Group string // whose transactional ids are looked for, and whose offsets
	// Client are the options of the Kafka clients: brokers, security.
	Client []kgo.Opt
}

// finder looks by one client.
type finder struct {
	o   *Options
	cl  *kgo.Client
	adm *kadm.Client
}

// Find looks for the group's transactions that are open on a partition although
// their coordinator has nothing to do there any more.
func Find(ctx context.Context, o Options) ([]Transaction, error) {
	cl, err := kgo.NewClient(o.Client...)
	if err != nil {
		return nil, fmt.Errorf("making the Kafka client: %w", err)
	}
	defer cl.Close()
	f := &finder{o: &o, cl: cl, adm: kadm.NewClient(cl)}
	ids, err := f.ids(ctx)
	if err != nil {
		return nil, err
	}
	places, err := f.places(ctx)
	if err != nil {
		return nil, err
	}
	open, err := f.open(ctx, places, ids)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	told, err := f.adm.DescribeTransactions(ctx, slices.Sorted(maps.Values(ids))...)
	if err != nil {
		return nil, fmt.Errorf("describing the transactions of group %s: %w", o.Group, err)
	}
	// Looked at again: what had just been decided when it was first seen has its
	// markers by the time its coordinator calls it complete.
	again, err := f.open(ctx, places, ids)
	if err != nil {
		return nil, err
	}
	return f.decide(ctx, hangs(open, again, ids, told))
}

// ids are the transactional ids of the group by producer id.
func (f *finder) ids(ctx context.Context) (map[int64]string, error) {
	all, err := f.adm.ListTransactions(ctx, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("listing transactions: %w", err)
	}
	ids := map[int64]string{}
	for _, t := range all {
		if ours(f.o.Group, t.TxnID) {
			ids[t.ProducerID] = t.TxnID
		}
	}
	return ids, nil
}

// ours tells <group>-<slot>-<session> from the ids of others.
func ours(group, id string) bool {
	slot, i, ok := strings.Cut(strings.TrimPrefix(id, group+"-"), "-")
	return ok && strings.HasPrefix(id, group+"-") && number(slot) && number(i)
}

func number(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// places are all partitions of topics, and that of the group's offsets.
func (f *finder) places(ctx context.Context) (kadm.TopicsSet, error) {
	all, err := f.adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	set := kadm.TopicsSet{}
	for _, t := range all {
		switch {
		case t.Topic == offsetsTopic && len(t.Partitions) > 0:
			set.Add(t.Topic, topics.CoordinatorPartition(f.o.Group, len(t.Partitions)))
		case !t.IsInternal && !strings.HasPrefix(t.Topic, "__"):
			set.Add(t.Topic, slices.Collect(maps.Keys(t.Partitions))...)
		}
	}
	return set, nil
}

// openAt is what is open by one producer on one partition.
type openAt struct {
	topic     string
	partition int32
	producer  int64
	epoch     int16
	from      int64
}

// open are the transactions of these producers that are open, with the epoch of
// the coordinator.
func (f *finder) open(ctx context.Context, places kadm.TopicsSet, ids map[int64]string) (map[openAt]int32, error) {
	told, err := f.adm.DescribeProducers(ctx, places)
	if err != nil {
		return nil, fmt.Errorf("describing the producers of %d topics: %w", len(places), err)
	}
	open := map[openAt]int32{}
	var errs []error
	for _, t := range told {
		for _, p := range t.Partitions {
			if p.Err != nil {
				errs = append(errs, fmt.Errorf("describing the producers of %s/%d: %w", p.Topic, p.Partition, p.Err))
			}
			for _, a := range p.ActiveProducers {
				if a.CurrentTxnStartOffset >= 0 && ids[a.ProducerID] != "" {
					open[openAt{p.Topic, p.Partition, a.ProducerID, a.ProducerEpoch, a.CurrentTxnStartOffset}] = a.CoordinatorEpoch
				}
			}
		}
	}
	return open, errors.Join(errs...)
}

// hangs are those open both times that their coordinator does not know of.
func hangs(open, again map[openAt]int32, ids map[int64]string, told kadm.DescribedTransactions) []Transaction {
	type key struct {
		producer int64
		epoch    int16
	}
	found := map[key]*Transaction{}
	for at := range open {
		coordinator, still := again[at]
		t := told[ids[at.producer]]
		if !still || t.Err != nil || t.ProducerID != at.producer || t.Topics.Lookup(at.topic, at.partition) {
			continue
		}
		k := key{at.producer, at.epoch}
		if found[k] == nil {
			found[k] = &Transaction{ID: t.TxnID, Producer: at.producer, Epoch: at.epoch}
		}
		found[k].Places = append(found[k].Places, Place{at.topic, at.partition, at.from, coordinator})
	}
	all := make([]Transaction, 0, len(found))
	for _, t := range found {
		slices.SortFunc(t.Places, func(a, b Place) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Transaction) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Epoch, b.Epoch))
	})
	return all
}

// decide adds what the coordinator decided.
func (f *finder) decide(ctx context.Context, all []Transaction) ([]Transaction, error) {
	for i := range all {
		states, err := f.states(ctx, all[i].ID)
		if err != nil {
			return all, fmt.Errorf("reading what was decided on transactional id %s: %w", all[i].ID, err)
		}
		all[i].Decision = decisionOf(states, all[i].Producer, all[i].Epoch)
	}
	return all, nil
}

// states are what the coordinator wrote about a transactional id and compaction
// has left.
func (f *finder) states(ctx context.Context, id string) (states []kmsg.TxnMetadataValue, err error) {
	ends, err := f.adm.ListEndOffsets(ctx, stateTopic)
	if err != nil {
		return nil, fmt.Errorf("asking for the end of %s: %w", stateTopic, err)
	}
	n := topics.CoordinatorPartition(id, len(ends[stateTopic]))
	end, ok := ends.Lookup(stateTopic, n)
	if !ok || end.Err != nil {
		return nil, fmt.Errorf("%s/%d tells no end: %w", stateTopic, n, cmp.Or(end.Err, errors.New("no answer")))
	}
	cl, err := kgo.NewClient(append(slices.Clone(f.o.Client),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{stateTopic: {n: kgo.NewOffset().AtStart()}}),
		kgo.KeepControlRecords())...)
	if err != nil {
		return nil, fmt.Errorf("making the reader of %s: %w", stateTopic, err)
	}
	defer cl.Close()
	for next := int64(0); next < end.Offset; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return nil, fmt.Errorf("reading %s/%d: %w", stateTopic, n, err)
		}
		for r := range fs.RecordsAll() {
			next = r.Offset + 1
			v, ok, err := stateOf(id, r.Key, r.Value)
			if err != nil {
				return nil, err
			}
			if ok {
				states = append(states, v)
			}
		}
	}
	return states, nil
}
