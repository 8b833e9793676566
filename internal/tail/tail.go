package tail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/topics/acl"
)

// Bounds of what is kept in memory.
const (
	MaxLast    = 1000     // records
	MaxPayload = 64 << 10 // bytes of a value; Record.Size is that of the whole
	fetchBytes = 8 << 20
)

// lookEvery is how often new partitions, and the right to read, are looked for
// while topics are followed.
const lookEvery = 2 * time.Second

// Options say what is shown.
type Options struct {
	Topics  []string
	Last    int           // so many of the newest, at most MaxLast
	Follow  bool          // then what comes, until the context ends
	Payload bool          // keep values, at most MaxPayload of each
	Who     acl.Principal // who is asked to be granted what is missing
	// Client are the options of the Kafka clients: brokers, security.
	Client []kgo.Opt
}

// Record is a record with its value cut.
type Record struct {
	*kgo.Record
	Size int // of the whole value; -1 for null
}

// UnknownTopicError names a topic that is not there, or may not be seen.
type UnknownTopicError struct {
	Topic string
	Grant string // the command that lets it be seen and read
}

func (e *UnknownTopicError) Error() string {
	return fmt.Sprintf("topic %q does not exist, or may not be seen; then grant: %s", e.Topic, e.Grant)
}

type place struct {
	topic     string
	partition int32
}

// span is a partition's committed records: [start, end).
type span struct{ start, end int64 }

// Run shows the last records, oldest first, then follows. A context that ends
// while it follows is no error.
func Run(ctx context.Context, o Options, show func(Record) error) error {
	client, err := kgo.NewClient(o.Client...)
	if err != nil {
		return fmt.Errorf("making the Kafka client: %w", err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	spans, err := o.look(ctx, adm)
	if err != nil {
		return err
	}
	last, err := newest(ctx, &o, spans)
	if err != nil {
		return err
	}
	for _, r := range last {
		if err := show(r); err != nil {
			return err
		}
	}
	if !o.Follow {
		return nil
	}
	return follow(ctx, &o, adm, spans, show)
}

func read(topic string) acl.Right { return acl.Tail([]acl.Name{acl.Named(topic)})[0] }

// partitions lists those of the topics, if they are there and may be read: a
// fetch that is denied would be tried again for ever.
func (o *Options) partitions(ctx context.Context, adm *kadm.Client) (all []place, err error) {
	var denied acl.Rights
	for _, name := range o.Topics {
		// One after the other: kadm has no answer for any where one is denied.
		meta, err := adm.ListTopics(kadm.WithAuthorizedOps(ctx), name)
		if err != nil && !errors.Is(err, kerr.TopicAuthorizationFailed) {
			return nil, fmt.Errorf("asking Kafka for topic %q: %w", name, err)
		}
		switch t := meta[name]; {
		case t.Err == nil && len(t.Partitions) > 0:
			// A broker that does not tell (before KIP-430) denies nothing.
			if len(t.AuthorizedOperations) > 0 && !slices.Contains(t.AuthorizedOperations, kmsg.ACLOperationRead) {
				denied = append(denied, read(name))
			}
			for p := range t.Partitions {
				all = append(all, place{name, p})
			}
		case t.Err == nil, errors.Is(t.Err, kerr.UnknownTopicOrPartition), errors.Is(t.Err, kerr.TopicAuthorizationFailed), errors.Is(t.Err, kerr.InvalidTopicException):
			return nil, &UnknownTopicError{name, o.Who.Commands(acl.Rights{read(name)})[0]}
		default:
			return nil, fmt.Errorf("asking Kafka for topic %q: %w", name, t.Err)
		}
	}
	if len(denied) > 0 {
		return nil, &acl.MissingError{Principal: o.Who, Rights: denied}
	}
	return all, nil
}

// look finds the partitions and what of them is committed.
func (o *Options) look(ctx context.Context, adm *kadm.Client) (map[place]span, error) {
	if _, err := o.partitions(ctx, adm); err != nil {
		return nil, err
	}
	topics := o.Topics
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("asking where %s start: %w", strings.Join(topics, ", "), err)
	}
	ends, err := adm.ListCommittedOffsets(ctx, topics...)
	if err = errors.Join(err, starts.Error(), ends.Error()); err != nil {
		return nil, fmt.Errorf("asking where %s end: %w", strings.Join(topics, ", "), err)
	}
	spans := map[place]span{}
	ends.Each(func(e kadm.ListedOffset) {
		if s, ok := starts.Lookup(e.Topic, e.Partition); ok {
			spans[place{e.Topic, e.Partition}] = span{s.Offset, e.Offset}
		}
	})
	return spans, nil
}

// open makes a consumer of the partitions from these offsets.
func (o *Options) open(from map[place]int64) (*kgo.Client, error) {
	at := map[string]map[int32]kgo.Offset{}
	for p, offset := range from {
		if at[p.topic] == nil {
			at[p.topic] = map[int32]kgo.Offset{}
		}
		at[p.topic][p.partition] = kgo.NewOffset().At(offset)
	}
	client, err := kgo.NewClient(append(append([]kgo.Opt{}, o.Client...),
		kgo.ConsumePartitions(at), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(fetchBytes/8))...)
	if err != nil {
		return nil, fmt.Errorf("making the Kafka consumer: %w", err)
	}
	return client, nil
}

// cut keeps no more of a record than is shown.
func (o *Options) cut(r *kgo.Record) Record {
	size := len(r.Value)
	if r.Value == nil {
		size = -1
	}
	kept := *r // the fetched batch goes with the original
	kept.Key, kept.Value = append([]byte(nil), r.Key...), nil
	if r.Key == nil {
		kept.Key = nil
	}
	if o.Payload && size > 0 {
		kept.Value = append([]byte(nil), r.Value[:min(size, MaxPayload)]...)
	}
	kept.Headers = make([]kgo.RecordHeader, len(r.Headers))
	for i, h := range r.Headers {
		kept.Headers[i] = kgo.RecordHeader{Key: strings.Clone(h.Key), Value: clone(h.Value)}
	}
	return Record{&kept, size}
}

// clone keeps null apart from empty.
func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
