package processor

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// rawRecords tells whether a raw partition has records in a range that has no
// output. Between outputs there can as well be markers of transactions and
// records that a producer aborted, which get none. It reads onwards, as the
// ranges come; most learners never open it.
type rawRecords struct {
	cl     *kgo.Client
	place  place
	starts int64 // of the log: what was before it cannot be told
	ends   int64 // likewise what was behind: an unclean election has cut the log
	next   int64 // next offset to be seen
	ahead  []int64
}

func (p *Processor) openRaw(w place, logStart, logEnd, from int64) (*rawRecords, error) {
	from = max(from, logStart)
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(p.cfg.Brokers...),
		kgo.ClientID(p.cfg.Group + "-learning"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: {w.partition: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // else the end of a range could not be told from silence
		kgo.FetchMaxBytes(min(p.cfg.FetchMax, readerFetch)),
		kgo.FetchMaxPartitionBytes(min(p.cfg.FetchMax, 1<<20)),
	}, p.cfg.ClientOptions...)...)
	if err != nil {
		return nil, fmt.Errorf("opening the reader of raw records: %w", err)
	}
	return &rawRecords{cl: cl, place: w, starts: logStart, ends: logEnd, next: from}, nil
}

// in reports whether there are records at offsets in [from, to), or were: what is
// not in the log any more is counted as one. Ranges come in order, and end before
// what is committed.
func (r *rawRecords) in(ctx context.Context, from, to int64) (bool, error) {
	if from < r.starts || to > r.ends {
		return true, nil
	}
	for {
		for len(r.ahead) > 0 && r.ahead[0] < from {
			r.ahead = r.ahead[1:]
		}
		if len(r.ahead) > 0 {
			return r.ahead[0] < to, nil
		}
		if r.next >= to {
			return false, nil
		}
		if err := r.fill(ctx); err != nil {
			return false, err
		}
	}
}

func (r *rawRecords) fill(ctx context.Context) error {
	waiting, cancel := context.WithTimeoutCause(ctx, readerSilence, errReaderSilent)
	defer cancel()
	fs := r.cl.PollRecords(waiting, 2000)
	if err := ctx.Err(); err != nil {
		return err
	}
	if fs.NumRecords() == 0 && waiting.Err() != nil {
		return context.Cause(waiting)
	}
	for _, e := range fs.Errors() {
		return fmt.Errorf("reading raw %s/%d: %w", e.Topic, e.Partition, e.Err)
	}
	fs.EachRecord(func(rec *kgo.Record) {
		r.next = rec.Offset + 1
		if !rec.Attrs.IsControl() {
			r.ahead = append(r.ahead, rec.Offset)
		}
	})
	return nil
}

func (r *rawRecords) close() {
	if r != nil {
		r.cl.Close()
	}
}

// hole looks at a range between outputs that follow each other, and notes it as
// a gap where raw has records. Where a person has said to go on without outputs
// that retention has taken (ledger.OutputsTaken) no range says anything: those of
// one topic are gone, and those of another before and behind them are there.
func (w *learner) hole(ctx context.Context, from, to ledger.Position) error {
	if to.Offset <= from.Offset || !from.Less(to) || w.taken {
		return nil
	}
	if w.raw == nil {
		raw, err := w.s.proc.openRaw(w.p.place, w.logStart, w.logEnd, from.Offset)
		if err != nil {
			return err
		}
		w.raw = raw
	}
	there, err := w.raw.in(ctx, from.Offset, to.Offset)
	if err != nil {
		return fmt.Errorf("looking for records without an output: %w", err)
	}
	if there {
		w.gaps = append(w.gaps, ledger.Range{From: from, To: to})
		w.s.m.gap(w.p.topic, to.Offset-from.Offset)
		w.s.log.Error("records of raw have no output: a gap is recorded", "topic", w.p.topic, "partition", w.p.partition,
			"from_offset", from.Offset, "to_offset", to.Offset)
	}
	return nil
}
