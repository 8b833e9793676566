package integration

import (
	"fmt"
	"testing"

	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
)

// bundleOnOwnPostgres is a bundle with a PostgreSQL server that no other test uses.
func bundleOnOwnPostgres(t *testing.T, s setup) (*bundle, *devservices.Postgres) {
	t.Helper()
	pg, err := shared.services.StartPostgres(t.Context(), "shared_buffers=32MB")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Close()) })
	s.Postgres = pg
	return newBundle(t, s), pg
}

func (b *bundle) copyData(t *testing.T, pg *devservices.Postgres) (copied string) {
	t.Helper()
	copied, err := pg.CopyData()
	require.NoError(t, err)
	return copied
}

// putBack restores a copy: everything PostgreSQL committed since is forgotten,
// while Kafka knows it.
func (b *bundle) putBack(t *testing.T, pg *devservices.Postgres, copied string) {
	t.Helper()
	require.NoError(t, pg.RestoreData(t.Context(), copied))
}

// forgotten sends what PostgreSQL will forget: resends of what it will know, and
// new messages. It returns how many records are lost to the ledger.
func (b *bundle) forgotten(t *testing.T) float64 {
	t.Helper()
	lost := append(b.everywhere("b", 20), b.everywhere("a", 10)...)
	b.produce(t, lost...)
	b.awaitOutputs(t)
	return float64(len(lost))
}

// judgeLearned requires that all that was forgotten was learned, that nothing is
// doubled or lost, and that the accounts are those of the outputs.
func (b *bundle) judgeLearned(t *testing.T, f *filter, lost float64) {
	t.Helper()
	b.checkHandled(t)
	f.awaitMetric(t, "dedup_learned_records_total", nil, func(v float64) bool { return v >= lost })
	f.term(t)
	b.checkStopped(t)
	require.Zero(t, b.sumOf(t, `select count(*) from dedup_gap`), "gaps, where every record has its output")
}

// TestPostgresPutBackUnderARunningFilter: the next chunk is refused, and the
// filter learns from the outputs before it decides anything.
func TestPostgresPutBackUnderARunningFilter(t *testing.T) {
	t.Parallel()
	b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 20)...)
	b.awaitOutputs(t)
	copied := b.copyData(t, pg)
	lost := b.forgotten(t)
	b.putBack(t, pg, copied)
	b.produce(t, append(b.everywhere("b", 25), b.everywhere("a", 20)...)...)
	b.judgeLearned(t, f, lost)
}

// TestPostgresPutBackBetween: the same while the filter is stopped or killed, with
// the group's offset ours and with one that another tool set.
func TestPostgresPutBackBetween(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(*filter, *testing.T)
		reset func(*bundle, *testing.T)
	}{
		"stopped":                             {end: (*filter).term},
		"killed":                              {end: (*filter).kill},
		"stopped, offset set to the start":    {(*filter).term, resets["to the start"].do},
		"killed, offset deleted":              {(*filter).kill, resets["deleted"].do},
		"stopped, offset set to where it was": {(*filter).term, resets["to the current one"].do},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2})
			f := b.start(t, 0)
			b.produce(t, b.everywhere("a", 20)...)
			b.awaitOutputs(t)
			copied := b.copyData(t, pg)
			lost := b.forgotten(t)
			c.end(f, t)
			b.putBack(t, pg, copied)
			if c.reset != nil {
				b.vacate(t)
				c.reset(b, t)
			}
			b.produce(t, append(b.everywhere("b", 25), b.everywhere("a", 20)...)...)
			b.judgeLearned(t, b.start(t, 0), lost)
		})
	}
}

// TestPositionsLost: PostgreSQL is put back to a time before the partitions had
// their rows. The group's offsets are ours all the same: everything is learned.
func TestPositionsLost(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"under a running filter": true, "between": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2})
			copied := b.copyData(t, pg)
			f := b.start(t, 0)
			lost := b.forgotten(t)
			if !running {
				f.term(t)
			}
			b.putBack(t, pg, copied)
			b.produce(t, b.everywhere("b", 25)...)
			if !running {
				f = b.start(t, 0)
			}
			b.judgeLearned(t, f, lost)
		})
	}
}

// TestMarkersAreNoGap: senders use transactions, and abort some. What PostgreSQL
// lost is learned over their markers and aborted records, and none of it is taken
// for records without an output.
func TestMarkersAreNoGap(t *testing.T) {
	t.Parallel()
	b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produceTransaction(t, true, b.everywhere("a", 5)...)
	b.awaitOutputs(t)
	copied := b.copyData(t, pg)
	for i := range 4 {
		b.produceTransaction(t, i%2 == 0, b.everywhere(fmt.Sprint("b", i), 3)...)
	}
	b.awaitOutputs(t)
	f.term(t)
	b.putBack(t, pg, copied)
	b.produce(t, b.everywhere("c", 3)...)
	b.judgeLearned(t, b.start(t, 0), float64(2*len(b.everywhere("b", 3))))
}
