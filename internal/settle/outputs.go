package settle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// told is what the committed outputs behind W tell of a raw partition.
type told struct {
	found   bool
	highest int64           // offset of the last raw record that has an output
	first   ledger.Position // behind the last NEW, which alone proves topic id and epoch; W if there is none
	gone    string          // retention has taken outputs: which
}

// silence is longer than any transaction of the filter lives.
const silence = 2 * time.Minute

// errSilent says that outputs could not be read to their end.
var errSilent = errors.New("an output topic could not be read to its end for long: a transaction on it is open and hangs")

// outputPlace is one output partition that is to be read, from where to where.
type outputPlace struct {
	topic     string
	partition int32
}

// read reads the outputs from where those of W end, under read_committed, up to
// the high watermarks of now: it waits until no transaction of before is open.
func (s *Stores) read(ctx context.Context, of ledger.Standing) (told, error) {
	t := told{first: of.W}
	targets := map[outputPlace]int64{}
	from := map[string]map[int32]kgo.Offset{}
	for topic, ends := range of.Outputs {
		for _, n := range slices.Sorted(maps.Keys(ends)) {
			if n < 0 || topic == of.Topic {
				continue
			}
			start, end, err := s.listed(ctx, topic, n)
			if err != nil {
				return t, err
			}
			at := ends[n]
			if at > end.Offset {
				at = start.Offset // deleted and made again since
			}
			if at < start.Offset {
				t.gone = fmt.Sprintf("%s/%d starts at %d, needed from %d", topic, n, start.Offset, at)
				return t, nil
			}
			if at < end.Offset {
				targets[outputPlace{topic, n}] = end.Offset
				if from[topic] == nil {
					from[topic] = map[int32]kgo.Offset{}
				}
				from[topic][n] = kgo.NewOffset().At(at)
			}
		}
	}
	if len(targets) == 0 {
		return t, nil
	}
	return t, s.readTo(ctx, of, from, targets, &t)
}

func (s *Stores) readTo(ctx context.Context, of ledger.Standing, from map[string]map[int32]kgo.Offset, targets map[outputPlace]int64, t *told) error {
	cl, err := kgo.NewClient(append(slices.Clone(s.Kafka),
		kgo.ConsumePartitions(from), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())...)
	if err != nil {
		return fmt.Errorf("opening the reader of outputs: %w", err)
	}
	defer cl.Close()
	for len(targets) > 0 {
		waiting, cancel := context.WithTimeoutCause(ctx, silence, errSilent)
		fs := cl.PollRecords(waiting, 2000)
		quiet := waiting.Err() != nil
		cancel()
		if quiet && fs.NumRecords() == 0 {
			return errors.Join(ctx.Err(), errSilent)
		}
		for _, e := range fs.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return fmt.Errorf("reading output %s/%d: %w", e.Topic, e.Partition, e.Err)
			}
		}
		fs.EachRecord(func(rec *kgo.Record) {
			w := outputPlace{rec.Topic, rec.Partition}
			end, wanted := targets[w]
			if !wanted {
				return
			}
			if rec.Offset < end && !rec.Attrs.IsControl() {
				t.take(of, rec)
			}
			if rec.Offset >= end-1 {
				delete(targets, w)
			}
		})
	}
	return nil
}

func (t *told) take(of ledger.Standing, rec *kgo.Record) {
	o, err := topics.ReadOutput(rec)
	if err != nil || o.Released || o.ReplayID != "" || o.Origin.Partition != of.Partition.Partition ||
		!o.Origin.In(of.Topic, of.Partition.Topic) || o.Origin.Offset < of.W.Offset {
		return
	}
	t.found, t.highest = true, max(t.highest, o.Origin.Offset)
	if o.Verdict != ledger.New {
		return
	}
	if epoch, ok := o.Epoch(of.Partition.Topic, of.W.Epoch, of.D.Epoch); ok {
		t.first = t.first.Max(ledger.Position{Epoch: epoch, Offset: o.Origin.Offset + 1})
	}
}
