package ledger

import (
	"crypto/sha1" //nolint:gosec // UUIDv5 is made of SHA-1
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

// TopicID is Kafka's own identity of a topic (KIP-516): a topic that is deleted
// and created again has another one.
type TopicID [16]byte

// String is the id as a UUID, the spelling the tables use.
func (t TopicID) String() string { return uuid.UUID(t).String() }

// Partition is one partition of one incarnation of a topic.
type Partition struct {
	Topic     TopicID
	Partition int32
}

func (p Partition) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

// Position is a place in a partition: leader epoch and offset of the next
// record, as Kafka's committed offsets are. Compared epoch first (ARCHITECTURE §4).
type Position struct {
	Epoch  int32
	Offset int64
}

// Less reports whether p lies before q, epoch first.
func (p Position) Less(q Position) bool {
	return p.Epoch < q.Epoch || (p.Epoch == q.Epoch && p.Offset < q.Offset)
}

// Max is the later of both.
func (p Position) Max(q Position) Position {
	if p.Less(q) {
		return q
	}
	return p
}

func (p Position) String() string { return fmt.Sprintf("%d@%d", p.Offset, p.Epoch) }

// Gate is the way a registration came in.
type Gate uint8

// The gates; the numbers are stored.
const (
	GateKafka  Gate = 1
	GateAPI    Gate = 2
	GateImport Gate = 3
)

// Origin says who registered a key first. Origins are equal when all fields
// are: of a Kafka record topic id, partition, leader epoch and offset; of an
// API call client and attempt. A row's origin never changes.
type Origin struct {
	Gate            Gate
	Topic           TopicID
	Partition       int32
	Epoch           int32
	Offset          int64
	Client, Attempt string
}

// At is the position of a Kafka record itself.
func (o Origin) At() Position { return Position{Epoch: o.Epoch, Offset: o.Offset} }

// Next is the position behind a Kafka record.
func (o Origin) Next() Position { return Position{Epoch: o.Epoch, Offset: o.Offset + 1} }

// ID is the dedup-id of what this origin registered: UUIDv5 (RFC 9562 §5.5) in
// the namespace of the topic id, over "partition/epoch/offset" (ARCHITECTURE §3).
func (o Origin) ID() uuid.UUID {
	// As uuid.NewSHA1 does, on the stack: each accepted record has an id.
	var text [len(o.Topic) + 10 + 1 + 10 + 1 + 19]byte
	b := append(text[:0], o.Topic[:]...)
	b = append(strconv.AppendInt(b, int64(o.Partition), 10), '/')
	b = append(strconv.AppendInt(b, int64(o.Epoch), 10), '/')
	sum := sha1.Sum(strconv.AppendInt(b, o.Offset, 10)) //nolint:gosec // UUIDv5 is made of SHA-1
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 5<<4
	id[8] = id[8]&0x3f | 0x80
	return id
}
