package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
)

// Bounds of what a reader keeps of one output partition that is ahead of the
// others.
const (
	readerPause  = 4000
	readerResume = 1000
)

const (
	readerFetch = 4 << 20 // bytes that a reader buffers per broker
	// readerSilence is longer than any transaction of ours lives: what reads
	// nothing for so long waits behind one that hangs, and makes room.
	readerSilence = 2 * time.Minute
)

// errReaderSilent says that nothing could be read although there is something.
var errReaderSilent = errors.New("no output could be read for long: a transaction on an output topic is open and hangs; `dedup topics hanging` finds it and `dedup topics hanging --end` ends it")

// stream is one output partition on its way to the merge.
type stream struct {
	place
	next    int64 // next offset to be seen, control records included
	target  int64 // high watermark at the start of reading
	waiting []told
	paused  bool
}

func (st *stream) done() bool { return st.next >= st.target }

// outputReader reads committed outputs of one raw partition in the order of
// their origins. Within one output partition they stand in that order already
// (one session at a time produces them, poll after poll), so the streams are
// merged.
//
// It reads read_committed up to the high watermarks seen at the start: the
// fetches themselves wait until no transaction of before is open below them.
type outputReader struct {
	cl      *kgo.Client
	streams map[place]*stream
	keep    func(*kgo.Record) (told, bool)
	silence time.Duration
}

// openReader starts at begin (by output partition; missing: 0). It fails with
// errOutputsGone where a log starts behind that.
func (p *Processor) openReader(ctx context.Context, adm *kadm.Client, begin ledger.Outputs, of []place, keep func(*kgo.Record) (told, bool)) (*outputReader, error) {
	names := placeTopics(of)
	first, err := adm.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("listing output starts: %w", err)
	}
	last, err := adm.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("listing output ends: %w", err)
	}
	r := &outputReader{streams: map[place]*stream{}, keep: keep, silence: readerSilence}
	from := map[string]map[int32]kgo.Offset{}
	for _, w := range of {
		lo, ok := first.Lookup(w.topic, w.partition)
		hi, ok2 := last.Lookup(w.topic, w.partition)
		if !ok || !ok2 || lo.Err != nil || hi.Err != nil {
			return nil, fmt.Errorf("output %s/%d lists no offsets", w.topic, w.partition)
		}
		at := begin[w.topic][w.partition]
		if at > hi.Offset {
			at = lo.Offset // deleted and made again since: none of it is known
		}
		if outputsGone(at, lo.Offset, hi.Offset) {
			return nil, fmt.Errorf("%w: %s/%d starts at %d, needed from %d", errOutputsGone, w.topic, w.partition, lo.Offset, at)
		}
		at = max(at, lo.Offset)
		r.streams[w] = &stream{place: w, next: at, target: hi.Offset}
		if at < hi.Offset {
			if from[w.topic] == nil {
				from[w.topic] = map[int32]kgo.Offset{}
			}
			from[w.topic][w.partition] = kgo.NewOffset().At(at)
		}
	}
	if len(from) == 0 {
		return r, nil
	}
	opts := append([]kgo.Opt{
		kgo.SeedBrokers(p.cfg.Brokers...),
		kgo.ClientID(p.cfg.Group + "-learning"),
		kgo.ConsumePartitions(from),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // else the end of a log could not be told from silence
		kgo.FetchMaxBytes(min(p.cfg.FetchMax, readerFetch)),
		kgo.FetchMaxPartitionBytes(min(p.cfg.FetchMax, 1<<20)),
		kgo.FetchMaxWait(250 * time.Millisecond),
	}, p.cfg.ClientOptions...)
	if r.cl, err = kgo.NewClient(opts...); err != nil {
		return nil, fmt.Errorf("opening the reader of outputs: %w", err)
	}
	return r, nil
}

// outputsGone reports whether outputs at or behind an offset may have been deleted,
// of a log that starts and ends so. A committed output has the marker of its
// transaction behind it: where the log has grown by one offset alone there is
// none. As a rule that one is the marker of the last transaction we know of.
func outputsGone(at, start, end int64) bool {
	return at < start && end > at+1
}

func placeTopics(of []place) []string {
	var names []string
	seen := map[string]bool{}
	for _, w := range of {
		if !seen[w.topic] {
			seen[w.topic] = true
			names = append(names, w.topic)
		}
	}
	return names
}

// next is the committed output with the lowest origin that was not read yet,
// or false at the end.
func (r *outputReader) next(ctx context.Context) (told, bool, error) {
	for {
		var low *stream
		starved := false
		for _, st := range r.streams {
			if len(st.waiting) == 0 {
				starved = starved || !st.done()
				continue
			}
			if low == nil || st.waiting[0].origin.Less(low.waiting[0].origin) {
				low = st
			}
		}
		switch {
		case starved:
			if err := r.fill(ctx); err != nil {
				return told{}, false, err
			}
		case low == nil:
			return told{}, false, nil
		default:
			t := low.waiting[0]
			low.waiting = low.waiting[1:]
			return t, true, nil
		}
	}
}

// fill polls once and keeps a stream that is far ahead from filling memory.
func (r *outputReader) fill(ctx context.Context) error {
	waiting, cancel := context.WithTimeoutCause(ctx, r.silence, errReaderSilent)
	defer cancel()
	fs := r.cl.PollRecords(waiting, 2000)
	if err := ctx.Err(); err != nil {
		return err
	}
	if fs.NumRecords() == 0 && waiting.Err() != nil {
		return context.Cause(waiting)
	}
	for _, e := range fs.Errors() {
		return fmt.Errorf("reading output %s/%d: %w", e.Topic, e.Partition, e.Err)
	}
	fs.EachRecord(func(rec *kgo.Record) {
		st := r.streams[place{rec.Topic, rec.Partition}]
		if st == nil || rec.Offset < st.next {
			return
		}
		st.next = rec.Offset + 1
		if rec.Offset >= st.target || rec.Attrs.IsControl() {
			return
		}
		if t, ok := r.keep(rec); ok {
			t.at = rec.Offset
			st.waiting = append(st.waiting, t)
		}
	})
	pause, resume := map[string][]int32{}, map[string][]int32{}
	for _, st := range r.streams {
		switch {
		case !st.paused && (len(st.waiting) > readerPause || st.done()):
			st.paused = true
			pause[st.topic] = append(pause[st.topic], st.partition)
		case st.paused && len(st.waiting) < readerResume && !st.done():
			st.paused = false
			resume[st.topic] = append(resume[st.topic], st.partition)
		}
	}
	if len(pause) > 0 {
		r.cl.PauseFetchPartitions(pause)
	}
	if len(resume) > 0 {
		r.cl.ResumeFetchPartitions(resume)
	}
	return nil
}

// ends is where the outputs of what was handed out so far end.
func (r *outputReader) ends() ledger.Outputs {
	o := ledger.Outputs{}
	for _, st := range r.streams {
		if o[st.topic] == nil {
			o[st.topic] = map[int32]int64{}
		}
		at := st.next
		if len(st.waiting) > 0 {
			at = st.waiting[0].at
		}
		o[st.topic][st.partition] = at
	}
	return o
}

func (r *outputReader) close() {
	if r.cl != nil {
		r.cl.Close()
	}
}
