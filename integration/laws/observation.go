// Package laws holds what a filter has done against the laws of ARCHITECTURE §2
// and the wire contract. It is for tests: those of integration, and the campaign
// of integration/chaos. It never asks the product what is right; that is told by
// whoever sent the records.
package laws

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kind of an output topic.
type Kind string

// The kinds there are.
const (
	Clean      Kind = "clean"
	Duplicates Kind = "duplicates"
	DeadLetter Kind = "dead-letter"
)

// Output is a committed output record.
type Output struct {
	Kind   Kind
	Record *kgo.Record
	Origin Place // of the raw record, as its header says
}

// OutputOf reads an output record of a topic that is named after its kind.
func OutputOf(r *kgo.Record) (*Output, error) {
	out := &Output{Kind: Clean, Record: r}
	switch {
	case strings.HasPrefix(r.Topic, "duplicates."):
		out.Kind = Duplicates
	case strings.HasPrefix(r.Topic, "dead-letter."):
		out.Kind = DeadLetter
	}
	var err error
	if out.Origin, err = ParsePlace(Header(r, "dedup-origin")); err != nil {
		return nil, fmt.Errorf("dedup-origin of %s: %w", out, err)
	}
	return out, nil
}

func (o *Output) String() string {
	return fmt.Sprintf("%s/%d/%d", o.Record.Topic, o.Record.Partition, o.Record.Offset)
}

// Status is the verdict that the output tells.
func (o *Output) Status() string { return Header(o.Record, "dedup-status") }

// Account is a line of dedup_hour without its hour.
type Account struct{ Scope, Status string }

// Tally is what dedup_hour has of an account.
type Tally struct{ Count, Bytes int64 }

// Position is a line of dedup_position.
type Position struct{ DEpoch, WEpoch, D, W int64 }

// Observation is everything the laws are judged by.
type Observation struct {
	Sent      map[Place]*Sent
	Epochs    map[Place]int32 // leader epochs of the raw records
	TopicIDs  map[string]uuid.UUID
	CleanOf   map[string]string // raw topic -> clean topic
	Outputs   []*Output         // by topic and partition in order of offsets
	Hours     map[Account]Tally
	Positions map[Place]Position // offset 0
	LogEnds   map[Place]int64    // of raw partitions, offset 0; missing: the end of what was sent
	Gone      map[Place]bool     // lie in a recorded gap: no output is due, and none may be there
	Ended     map[Place]bool     // raw partitions that are no more, offset 0: nothing is said of their positions
	Stopped   bool               // after a clean stop: W = D, at or behind the last record
	Taken     time.Time
}

// NewObservation has nothing in it yet.
func NewObservation() *Observation {
	return &Observation{
		Sent: map[Place]*Sent{}, Epochs: map[Place]int32{}, TopicIDs: map[string]uuid.UUID{}, CleanOf: map[string]string{},
		Hours: map[Account]Tally{}, Positions: map[Place]Position{}, LogEnds: map[Place]int64{}, Gone: map[Place]bool{}, Ended: map[Place]bool{},
	}
}
