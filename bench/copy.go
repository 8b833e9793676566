package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// copyCommand makes this program the copy.
const copyCommand = "copy"

// copy drains the topic with the same loop as the filter's, without a ledger.
func (s *stage) copy(ctx context.Context, n int) (figures, error) {
	name := fmt.Sprintf("copy.%s-%d", s.id, n)
	if err := s.makeTopic(ctx, name); err != nil {
		return figures{}, err
	}
	defer s.dropTopics(context.WithoutCancel(ctx), name)
	group := "bench-" + name
	args := []string{
		copyCommand, "-brokers", strings.Join(s.services.KafkaBrokers, ","), "-from", s.raw, "-to", name,
		"-group", group, "-sessions", strconv.Itoa(s.o.sessions),
	}
	return s.drainWith(ctx, group, s.self, args, nil, filepath.Join(s.dir, name+".log"))
}

// copier is the child process.
type copier struct{ brokers, from, to, group string }

func runCopy(ctx context.Context, args []string) error {
	var c copier
	f := flag.NewFlagSet(copyCommand, flag.ContinueOnError)
	f.SetOutput(os.Stderr)
	f.StringVar(&c.brokers, "brokers", "", "host:port,...")
	f.StringVar(&c.from, "from", "", "topic")
	f.StringVar(&c.to, "to", "", "topic")
	f.StringVar(&c.group, "group", "", "consumer group")
	sessions := f.Int("sessions", 1, "client sessions")
	if err := f.Parse(args); err != nil {
		return err //nolint:wrapcheck // printed by the flag set
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range *sessions {
		g.Go(func() error { return c.session(ctx, i) })
	}
	return g.Wait() //nolint:wrapcheck // a sentence already
}

// session polls, copies and commits as the filter's session does, with the same
// client settings. It makes no attempt to mend anything.
func (c *copier) session(ctx context.Context, i int) error {
	gts, err := kgo.NewGroupTransactSession(c.options(i)...)
	if err != nil {
		return fmt.Errorf("opening session %d: %w", i, err)
	}
	defer gts.CloseAllowingRebalance()
	if _, _, err := gts.Client().ProducerID(ctx); err != nil {
		return fmt.Errorf("fencing: %w", err)
	}
	for ctx.Err() == nil {
		records, err := poll(ctx, gts)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			continue
		}
		if err := c.transact(gts, records); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) options(i int) []kgo.Opt {
	id := fmt.Sprintf("%s-0-%d", c.group, i)
	return []kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.brokers, ",")...), kgo.ClientID("bench-" + id),
		kgo.ConsumerGroup(c.group), kgo.TransactionalID(id), kgo.InstanceID(id),
		kgo.TransactionTimeout(60 * time.Second), kgo.RebalanceTimeout(30 * time.Second), kgo.SessionTimeout(10 * time.Second),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.ConsumeTopics(c.from),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(16 << 20), kgo.FetchMaxPartitionBytes(512 << 10), kgo.FetchMaxWait(250 * time.Millisecond),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
}

// poll waits for a first record, then at most 20 ms for a full batch
// (processor.batch_wait).
func poll(ctx context.Context, gts *kgo.GroupTransactSession) ([]*kgo.Record, error) {
	records, err := pollOnce(ctx, gts, batch, 500*time.Millisecond)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	for end := time.Now().Add(20 * time.Millisecond); len(records) < batch; {
		left := time.Until(end)
		if left <= 0 {
			break
		}
		more, err := pollOnce(ctx, gts, batch-len(records), left)
		if err != nil {
			return nil, err
		}
		records = append(records, more...)
	}
	return records, nil
}

func pollOnce(ctx context.Context, gts *kgo.GroupTransactSession, most int, wait time.Duration) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fetches := gts.PollRecords(ctx, most)
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
			return nil, fmt.Errorf("fetching: %w", e.Err)
		}
	}
	return fetches.Records(), nil
}

func (c *copier) transact(gts *kgo.GroupTransactSession, records []*kgo.Record) error {
	if err := gts.Begin(); err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	first := kgo.AbortingFirstErrPromise(gts.Client())
	for _, r := range records {
		out := &kgo.Record{Topic: c.to, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		gts.Produce(context.Background(), out, first.Promise())
	}
	if err := gts.Client().Flush(context.Background()); err != nil {
		return fmt.Errorf("flushing: %w", err)
	}
	produced := first.Err()
	if _, err := gts.End(context.Background(), produced == nil); err != nil {
		return fmt.Errorf("ending a transaction: %w", err)
	}
	if produced != nil {
		return fmt.Errorf("producing: %w", produced)
	}
	return nil // not committed: a rebalance; the records come again
}
