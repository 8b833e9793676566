package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

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
	o.Stopped = stopped
	return errors.Join(late, o.Judge())
}

// observe gathers what there is.
func (b *bundle) observe(ctx context.Context) (*observation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, outputsWithin, errors.New("reading all topics took too long"))
	defer cancel()
	o := laws.NewObservation()
	for i, name := range b.raw {
		o.CleanOf[name] = b.clean[i]
	}
	books := b.books()
	for i := range books {
		o.Sent[books[i].Place] = &books[i]
	}
	steps := []func(context.Context, *observation) error{b.observeRaw, b.observeOutputs, b.observeHours, b.observePositions}
	for _, step := range steps {
		if err := step(ctx, o); err != nil {
			return nil, err
		}
	}
	o.Taken = time.Now()
	return o, nil
}

// observeRaw learns the raw records' epochs, and that the books are complete.
func (b *bundle) observeRaw(ctx context.Context, o *observation) error {
	topics, err := b.admin.ListTopics(ctx, b.raw...)
	if err != nil {
		return fmt.Errorf("asking for topic ids: %w", err)
	}
	for name, d := range topics {
		o.TopicIDs[name] = uuid.UUID(d.ID)
	}
	ends, err := b.admin.ListEndOffsets(ctx, b.raw...)
	if err != nil {
		return fmt.Errorf("asking for the ends of raw topics: %w", err)
	}
	ends.Each(func(l kadm.ListedOffset) { o.LogEnds[place{Topic: l.Topic, Partition: l.Partition}] = l.Offset })
	records, err := laws.ReadCommitted(ctx, b.brokers, b.admin, b.raw...)
	if err != nil {
		return err
	}
	for _, r := range records {
		p := laws.PlaceOf(r)
		o.Epochs[p] = r.LeaderEpoch
		if o.Sent[p] == nil {
			return fmt.Errorf("raw record %s is not in the test's books", p)
		}
	}
	if len(records) != len(o.Sent) {
		return fmt.Errorf("%d raw records were read, the books have %d", len(records), len(o.Sent))
	}
	return nil
}

func (b *bundle) observeOutputs(ctx context.Context, o *observation) error {
	records, err := laws.ReadCommitted(ctx, b.brokers, b.admin, b.outputs()...)
	if err != nil {
		return err
	}
	for _, r := range records {
		out, err := laws.OutputOf(r)
		if err != nil {
			return err
		}
		o.Outputs = append(o.Outputs, out)
	}
	return nil
}

func (b *bundle) observeHours(ctx context.Context, o *observation) error {
	const q = `select scope, status, sum(count)::bigint, sum(bytes)::bigint from dedup_hour group by 1, 2`
	return b.query(ctx, q, func(rows pgx.Rows) error {
		var a laws.Account
		var n laws.Tally
		if err := rows.Scan(&a.Scope, &a.Status, &n.Count, &n.Bytes); err != nil {
			return err
		}
		o.Hours[a] = n
		return nil
	})
}

func (b *bundle) observePositions(ctx context.Context, o *observation) error {
	const q = `select topic, partition, d_epoch, d_offset, w_epoch, w_offset from dedup_position`
	return b.query(ctx, q, func(rows pgx.Rows) error {
		var at place
		var p position
		if err := rows.Scan(&at.Topic, &at.Partition, &p.DEpoch, &p.D, &p.WEpoch, &p.W); err != nil {
			return err
		}
		o.Positions[at] = p
		return nil
	})
}
