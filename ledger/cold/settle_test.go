package cold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func (b *bundle) standing(of ledger.Partition) ledger.Standing {
	b.Helper()
	all, err := b.l.Standings(b.Context())
	require.NoError(b, err)
	for _, s := range all {
		if s.Partition == of {
			return s
		}
	}
	require.FailNow(b, "no position", "of %s", of)
	return ledger.Standing{}
}

// An act replaces the claim, is written with its row in dedup_action or not at
// all, and is refused where somebody took the partition since it was looked at.
func TestSettle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	other.run(rec{offset: 0, key: "k", payload: "a"})
	was := b.standing(s.key.Partition)
	require.Equal(t, s.claim, was.Claim)
	act := ledger.Action{Actor: "maria", Kind: "skip", Place: "raw-1/0", Reason: "why", Detail: map[string]int{"orphans": 1}}
	to := ledger.Position{Epoch: 1, Offset: 5}
	change := ledger.Change{
		Partition: s.key.Partition, Claim: was.Claim, To: &to, Outputs: ledger.Outputs{"clean": {0: 7}},
		Gap: &ledger.Gap{Partition: s.key.Partition, Kind: ledger.GapSkip, Range: ledger.Range{To: to}},
	}
	beside := ledger.Change{Partition: other.key.Partition, Claim: ledger.NewClaim()}
	require.ErrorIs(t, b.l.Settle(t.Context(), act, []ledger.Change{change, beside}), ledger.ErrClaimLost)
	held := change
	held.Held = true
	require.ErrorIs(t, b.l.Settle(t.Context(), act, []ledger.Change{held}), ledger.ErrClaimLost, "nobody holds it")
	require.Equal(t, "0 0", b.one(`select (select count(*) from dedup_action) || ' ' || (select count(*) from dedup_gap)`), "all or nothing")
	require.Equal(t, was, b.standing(s.key.Partition))

	orphans, err := b.l.Orphans(t.Context(), s.key.Partition, change.Gap.Range)
	require.NoError(t, err)
	require.Len(t, orphans, 1)
	require.Equal(t, "k", orphans[0].Key)
	require.Equal(t, []ledger.Origin{other.registration(rec{offset: 0}).Origin}, orphans[0].Copies)

	require.True(t, s.hold("outputs_gone"))
	require.Equal(t, "outputs_gone", b.standing(s.key.Partition).Held)
	require.NoError(t, b.l.Settle(t.Context(), act, []ledger.Change{held}))
	require.Equal(t, `maria skip raw-1/0 why {"orphans": 1}`, b.one(`select concat_ws(' ', actor, kind, place, reason, detail) from dedup_action`))
	now := b.standing(s.key.Partition)
	require.Equal(t, []any{to, to, was.Seq + 1, "", ledger.Outputs{"clean": {0: 7}}}, []any{now.W, now.D, now.Seq, now.Held, now.Outputs})
	require.ErrorIs(t, b.l.Settle(t.Context(), act, []ledger.Change{held}), ledger.ErrClaimLost, "twice")
	_, err = b.l.Register(t.Context(), s.chunk(rec{offset: 1, key: "k1", payload: "a"}))
	require.ErrorIs(t, err, ledger.ErrClaimLost, "the session that worked on it")
	require.Equal(t, []string{"NEW"}, other.run(rec{offset: 1, key: "k", payload: "a"}), "of the orphan")
}
