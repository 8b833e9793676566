package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

const (
	rawTopic   = "raw-ingest.demo"
	partitions = 12
	group      = "dedup-ledger" // the product's default
	sessions   = 2
	slot       = 0
)

// instances are the static members of the filter's sessions: <group>-<slot>-<i>.
func instances() []string {
	var ids []string
	for i := range sessions {
		ids = append(ids, group+"-"+strconv.Itoa(slot)+"-"+strconv.Itoa(i))
	}
	return ids
}

// router has the product's default names.
func router() (*topics.Router, error) {
	r, err := topics.New(topics.Names{
		Raw: `^raw-ingest\.(.+)$`, Operator: "dedup-operator",
		Clean: "clean.$1", Duplicates: "duplicates", DeadLetter: "dead-letter",
	})
	if err != nil {
		return nil, fmt.Errorf("reading the topic names: %w", err)
	}
	return r, nil
}

// broker is the sender's and the reader's side of Kafka.
type broker struct {
	client  *kgo.Client // sends
	reader  *kgo.Client // reads the outputs, read_committed, from their start
	admin   *kadm.Client
	outputs []string
	books   *books
}

// openBroker makes the topics and connects to them.
func openBroker(ctx context.Context, addr string) (*broker, error) {
	sender, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ClientID("dedup-demo-sender"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return nil, fmt.Errorf("making the sender: %w", err)
	}
	b := &broker{client: sender, admin: kadm.NewClient(sender), books: newBooks()}
	if err := b.ensure(ctx); err != nil {
		b.close()
		return nil, err
	}
	// Control records tell where an aborted transaction at the end of a
	// partition ends: it yields no other record.
	b.reader, err = kgo.NewClient(kgo.SeedBrokers(addr), kgo.ClientID("dedup-demo-reader"),
		kgo.ConsumeTopics(b.outputs...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		b.close()
		return nil, fmt.Errorf("making the reader: %w", err)
	}
	return b, nil
}

// ensure does what `dedup topics ensure raw-ingest.demo` does.
func (b *broker) ensure(ctx context.Context) error {
	r, err := router()
	if err != nil {
		return err
	}
	const retention = 24 * time.Hour
	_, err = topics.Ensure(ctx, b.admin, topics.Plan{
		Router: r, Raw: []string{rawTopic}, MaxRecordBytes: 32 << 20,
		Create: topics.Create{
			Partitions: partitions, Replication: 1,
			RawRetention: retention, CleanRetention: retention, DuplicatesRetention: retention, DeadLetterRetention: retention,
		},
	})
	if err != nil {
		return fmt.Errorf("making the topics: %w", err)
	}
	b.outputs, err = r.Outputs(rawTopic)
	if err != nil {
		return fmt.Errorf("naming the outputs: %w", err)
	}
	return nil
}

func (b *broker) close() {
	b.client.Close()
	if b.reader != nil {
		b.reader.Close()
	}
}

// send produces messages in order and books them once they are acknowledged.
func (b *broker) send(ctx context.Context, messages []message) error {
	records := make([]*kgo.Record, len(messages))
	for i := range messages {
		m := &messages[i]
		records[i] = &kgo.Record{Topic: rawTopic, Partition: m.partition, Key: []byte(m.scope), Value: m.value}
	}
	if err := b.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("sending messages: %w", err)
	}
	for i, r := range records {
		b.books.book(messages[i], topics.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset})
	}
	return nil
}

// read books outputs until enough.
func (b *broker) read(ctx context.Context, enough func() bool) error {
	for !enough() {
		fetches := b.reader.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading the outputs: %w", err)
		}
		fetches.EachRecord(b.books.take)
	}
	return nil
}

// settle reads until every record from index on has an output, and then all
// that is committed: an output too many would lie behind the first.
func (b *broker) settle(ctx context.Context, from int) error {
	if err := b.read(ctx, func() bool { return b.books.missing(from) == 0 }); err != nil {
		return err
	}
	ends, err := b.stable(ctx)
	if err != nil {
		return err
	}
	return b.read(ctx, func() bool { return b.books.behind(ends) })
}

// stable waits until no transaction is open on the outputs and returns their
// ends.
func (b *broker) stable(ctx context.Context) (map[string]map[int32]int64, error) {
	var ends map[string]map[int32]int64
	err := await(ctx, func() (bool, error) {
		stable, err1 := b.admin.ListCommittedOffsets(ctx, b.outputs...)
		all, err2 := b.admin.ListEndOffsets(ctx, b.outputs...)
		if err := errors.Join(err1, err2, stable.Error(), all.Error()); err != nil {
			return false, fmt.Errorf("asking for the ends of the outputs: %w", err)
		}
		closed := true
		ends = map[string]map[int32]int64{}
		all.Each(func(end kadm.ListedOffset) {
			at, ok := stable.Lookup(end.Topic, end.Partition)
			closed = closed && ok && at.Offset >= end.Offset
			if ends[end.Topic] == nil {
				ends[end.Topic] = map[int32]int64{}
			}
			ends[end.Topic][end.Partition] = end.Offset
		})
		return closed, nil
	})
	return ends, err
}

// committed are the group's offsets by partition. An offset is committed in one
// transaction with the outputs, and every raw record has one output: so their
// sum is the number of committed outputs, also while another session's open
// transaction still hides some of them from readers.
func (b *broker) committed(ctx context.Context) ([]int64, error) {
	answer, err := b.admin.FetchOffsets(ctx, group)
	if err := errors.Join(err, answer.Error()); err != nil {
		return nil, fmt.Errorf("asking for the group's offsets: %w", err)
	}
	offsets := make([]int64, partitions)
	answer.Each(func(o kadm.OffsetResponse) {
		if o.Topic == rawTopic && o.Partition < partitions {
			offsets[o.Partition] = max(o.At, 0)
		}
	})
	return offsets, nil
}

// rewind does what `kafka-consumer-groups --reset-offsets --to-earliest` does.
// Like that tool it needs the group empty; static members of a stopped process
// stay until their session times out, unless they are taken out.
func (b *broker) rewind(ctx context.Context) error {
	left, err := b.admin.LeaveGroup(ctx, kadm.LeaveGroup(group).InstanceIDs(instances()...))
	for _, l := range left {
		if !errors.Is(l.Err, kerr.UnknownMemberID) { // its session has timed out
			err = errors.Join(err, l.Err)
		}
	}
	if err != nil {
		return fmt.Errorf("taking the stopped filter's members out of the group: %w", err)
	}
	var offsets kadm.Offsets
	for p := range int32(partitions) {
		offsets.AddOffset(rawTopic, p, 0, -1)
	}
	answer, err := b.admin.CommitOffsets(ctx, group, offsets)
	if err := errors.Join(err, answer.Error()); err != nil {
		return fmt.Errorf("setting the group's offsets to 0: %w", err)
	}
	at, err := b.committed(ctx)
	if err != nil {
		return err
	}
	if n := sum(at); n != 0 {
		return fmt.Errorf("the group's offsets were set to 0 and still add up to %d", n)
	}
	return nil
}

func sum(offsets []int64) int {
	n := int64(0)
	for _, o := range offsets {
		n += o
	}
	return int(min(n, math.MaxInt32))
}
