package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kind of an output topic.
type kind string

const (
	clean      kind = "clean"
	duplicates kind = "duplicates"
	deadLetter kind = "dead-letter"
)

// output is a committed output record.
type output struct {
	kind   kind
	record *kgo.Record
	origin place // of the raw record, as its header says
}

func (o *output) String() string {
	return fmt.Sprintf("%s/%d/%d", o.record.Topic, o.record.Partition, o.record.Offset)
}

func (o *output) status() string { return header(o.record, "dedup-status") }

// account is a line of dedup_hour without its hour.
type account struct{ scope, status string }

type tally struct{ count, bytes int64 }

// position is a line of dedup_position.
type position struct{ dEpoch, wEpoch, d, w int64 }

// observation is everything the laws are judged by.
type observation struct {
	sent      map[place]*sent
	epochs    map[place]int32 // leader epochs of the raw records
	topicIDs  map[string]uuid.UUID
	cleanOf   map[string]string // raw topic -> clean topic
	outputs   []*output         // by topic and partition in order of offsets
	hours     map[account]tally
	positions map[place]position // offset 0
	logEnds   map[place]int64    // of raw partitions, offset 0; missing: the end of what was sent
	stopped   bool               // after a clean stop: W = D, at or behind the last record
	taken     time.Time
}

// check waits until all that was sent has its output and requires the laws.
// Filters may still run.
func (b *bundle) check(t *testing.T) {
	t.Helper()
	require.NoError(t, b.laws(t, outputsWithin, false))
}

// checkStopped is check after every filter was stopped cleanly: what is
// committed must be written down too.
func (b *bundle) checkStopped(t *testing.T) {
	t.Helper()
	require.NoError(t, b.laws(t, outputsWithin, true))
}

// laws is check as an error, for controls that require one. When outputs are
// still missing after the time the rest is judged all the same: which are missing
// says more than that some are.
func (b *bundle) laws(t *testing.T, within time.Duration, stopped bool) error {
	t.Helper()
	k := b.track(t)
	defer k.client.Close()
	late := k.readUntil(t.Context(), within, k.all(b.books()))
	o, err := b.observe(t.Context())
	if err != nil {
		return errors.Join(late, err)
	}
	o.stopped = stopped
	return errors.Join(late, o.judge())
}

// observe gathers what there is.
func (b *bundle) observe(ctx context.Context) (*observation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, outputsWithin, errors.New("reading all topics took too long"))
	defer cancel()
	o := &observation{
		sent: map[place]*sent{}, epochs: map[place]int32{}, topicIDs: map[string]uuid.UUID{}, cleanOf: map[string]string{},
		hours: map[account]tally{}, positions: map[place]position{}, logEnds: map[place]int64{},
	}
	for i, name := range b.raw {
		o.cleanOf[name] = b.clean[i]
	}
	books := b.books()
	for i := range books {
		o.sent[books[i].place] = &books[i]
	}
	steps := []func(context.Context, *observation) error{b.observeRaw, b.observeOutputs, b.observeHours, b.observePositions}
	for _, step := range steps {
		if err := step(ctx, o); err != nil {
			return nil, err
		}
	}
	o.taken = time.Now()
	return o, nil
}

// observeRaw learns the raw records' epochs, and that the books are complete.
func (b *bundle) observeRaw(ctx context.Context, o *observation) error {
	topics, err := b.admin.ListTopics(ctx, b.raw...)
	if err != nil {
		return fmt.Errorf("asking for topic ids: %w", err)
	}
	for name, d := range topics {
		o.topicIDs[name] = uuid.UUID(d.ID)
	}
	ends, err := b.admin.ListEndOffsets(ctx, b.raw...)
	if err != nil {
		return fmt.Errorf("asking for the ends of raw topics: %w", err)
	}
	ends.Each(func(l kadm.ListedOffset) { o.logEnds[place{topic: l.Topic, partition: l.Partition}] = l.Offset })
	records, err := readCommitted(ctx, b.brokers, b.admin, b.raw...)
	if err != nil {
		return err
	}
	for _, r := range records {
		p := place{r.Topic, r.Partition, r.Offset}
		o.epochs[p] = r.LeaderEpoch
		if o.sent[p] == nil {
			return fmt.Errorf("raw record %s is not in the test's books", p)
		}
	}
	if len(records) != len(o.sent) {
		return fmt.Errorf("%d raw records were read, the books have %d", len(records), len(o.sent))
	}
	return nil
}

func (b *bundle) observeOutputs(ctx context.Context, o *observation) error {
	records, err := readCommitted(ctx, b.brokers, b.admin, b.outputs()...)
	if err != nil {
		return err
	}
	for _, r := range records {
		out := &output{kind: clean, record: r}
		switch {
		case strings.HasPrefix(r.Topic, "duplicates."):
			out.kind = duplicates
		case strings.HasPrefix(r.Topic, "dead-letter."):
			out.kind = deadLetter
		}
		if out.origin, err = parsePlace(header(r, "dedup-origin")); err != nil {
			return fmt.Errorf("dedup-origin of %s: %w", out, err)
		}
		o.outputs = append(o.outputs, out)
	}
	return nil
}

func (b *bundle) observeHours(ctx context.Context, o *observation) error {
	const q = `select scope, status, sum(count)::bigint, sum(bytes)::bigint from dedup_hour group by 1, 2`
	return b.query(ctx, q, func(rows pgx.Rows) error {
		var a account
		var n tally
		if err := rows.Scan(&a.scope, &a.status, &n.count, &n.bytes); err != nil {
			return err
		}
		o.hours[a] = n
		return nil
	})
}

func (b *bundle) observePositions(ctx context.Context, o *observation) error {
	const q = `select topic, partition, d_epoch, d_offset, w_epoch, w_offset from dedup_position`
	return b.query(ctx, q, func(rows pgx.Rows) error {
		var at place
		var p position
		if err := rows.Scan(&at.topic, &at.partition, &p.dEpoch, &p.d, &p.wEpoch, &p.w); err != nil {
			return err
		}
		o.positions[at] = p
		return nil
	})
}
