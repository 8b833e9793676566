package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func registration(offset int64, key string) ledger.Registration {
	r := ledger.Registration{Origin: ledger.Origin{Gate: ledger.GateKafka, Offset: offset}, HashMode: ledger.HashRaw}
	if key != "" {
		r.Keys = []ledger.Key{{Scope: "t:f", Key: key, Window: time.Hour}}
	}
	return r
}

func result(owner int64, key string, first time.Time, repeat int64) ledger.Result {
	return ledger.Result{
		Entry: ledger.Entry{
			Scope: "t:f", Key: key, HashMode: ledger.HashRaw,
			Origin:      ledger.Origin{Gate: ledger.GateKafka, Offset: owner},
			FirstSeenAt: first, ExpiresAt: first.Add(time.Hour),
		},
		Inserted: repeat == 0, Repeat: repeat,
	}
}

func TestFactsOf(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0).UTC()
	registrations := []ledger.Registration{
		registration(1, "a"), registration(2, ""), registration(3, "b"), registration(4, "a"),
		registration(5, "refused"), registration(6, "a"), registration(7, "b"),
	}
	later := result(7, "b", now.Add(time.Hour), 0)
	results := []ledger.Result{
		result(1, "a", now, 0),
		{},
		result(3, "b", now, 0), result(1, "a", now, 1),
		{Refused: "scope.fed_by_api"},
		result(1, "a", now, 2), later,
	}
	facts := ledger.FactsOf(registrations, results)
	require.Len(t, facts, 2)
	require.Equal(t, "a", facts[0].Key)
	require.Equal(t, int64(1), facts[0].Origin.Offset)
	require.Equal(t, int64(2), facts[0].RetryCount)
	require.True(t, facts[0].Inserted, "made in this batch, whatever came after")
	require.Equal(t, "b", facts[1].Key)
	require.Equal(t, int64(7), facts[1].Origin.Offset, "the last row of the key")
	require.Equal(t, now.Add(time.Hour), facts[1].FirstSeenAt)
}

func TestFactsOfARepeatAloneAreNoInsertion(t *testing.T) {
	t.Parallel()
	facts := ledger.FactsOf(
		[]ledger.Registration{registration(9, "a")},
		[]ledger.Result{result(1, "a", time.Unix(1, 0), 3)})
	require.Len(t, facts, 1)
	require.False(t, facts[0].Inserted)
	require.Equal(t, int64(3), facts[0].RetryCount)
}

func TestFactsOfNothing(t *testing.T) {
	t.Parallel()
	require.Empty(t, ledger.FactsOf(nil, nil))
}

func TestClockElapsedIsNeverNegative(t *testing.T) {
	t.Parallel()
	local := time.Unix(100, 0)
	c := ledger.Clock{Postgres: time.Unix(5, 0), Local: local}
	require.Equal(t, time.Second, c.Elapsed(local.Add(time.Second)))
	require.Zero(t, c.Elapsed(local.Add(-time.Second)))
}
