package cold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// writes is everything that writes, as a session does it that has decided up to
// offset 1 and now has the record there in hand.
func (s *session) writes() map[string]func() error {
	ctx, b, next := s.b.Context(), s.b, rec{offset: 1, key: "k1", payload: "a"}
	reg := s.registration(rec{offset: 0, key: "k", payload: "a"})
	return map[string]func() error{
		"Register": func() error { _, err := b.l.Register(ctx, s.chunk(next)); return err },
		"Flush": func() error {
			return b.l.Flush(ctx, []ledger.Advance{{Partition: s.key.Partition, Claim: s.claim, Seq: s.seq, D: s.d, NewD: s.d, W: s.d}})
		},
		"Learn": func() error {
			_, _, err := b.l.Learn(ctx, s.lesson(2, 0, s.learned(ledger.New, next, ago(0))))
			return err
		},
		"RecordGap": func() error {
			_, err := b.l.RecordGap(ctx, s.known(), &ledger.Gap{
				Partition: s.key.Partition, Kind: ledger.GapEpoch, Range: ledger.Range{To: ledger.Position{Offset: 1}},
			})
			return err
		},
		"Reject": func() error { return b.l.Reject(ctx, s.claim, &reg, "output.rejected") },
	}
}

// Nothing that writes is answered as success by a server that takes no writes.
func TestReadOnlyIsNoSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	b.l = b.open(cold.Config{MaxConns: 1})
	b.exec(`alter database ` + b.name + ` set default_transaction_read_only = on`)
	b.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = 'dedup_app'`)
	_ = b.l.Ping(t.Context()) // its connection is gone; the next one cannot write
	writes := s.writes()
	writes["Claim"] = func() error { _, _, err := b.l.Claim(t.Context(), s.key, ledger.NewClaim()); return err }
	writes["OpenPosition"] = func() error {
		_, err := b.l.OpenPosition(t.Context(), ledger.PositionKey{Partition: ledger.Partition{Partition: 9}}, s.claim, ledger.Position{}, nil)
		return err
	}
	writes["Hold"] = func() error { _, err := b.l.Hold(t.Context(), s.key.Partition, s.claim, "topics", ""); return err }
	writes["CountWitnesses"] = func() error { return b.l.CountWitnesses(t.Context(), []ledger.Witness{{}}) }
	for name, write := range writes {
		require.ErrorIs(t, write(), ledger.ErrUnavailable, name)
	}
	b.exec(`alter database ` + b.name + ` reset default_transaction_read_only`)
	require.Equal(t, "1", b.one(`select count(*) from dedup_ledger`))
	require.Equal(t, "1 0 1", b.one(`select d_offset || ' ' || w_offset || ' ' || seq from dedup_position`))
	require.NoError(t, writes["Register"](), "the control: it takes writes again")
}

// Nor by one that was put back to before what this session has written, with the
// claim still the session's.
func TestStaleIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, back := range []string{"seq = 0, d_offset = 0", "d_offset = 0", "seq = 0"} {
		b := setup(t)
		s := b.session(1, 0)
		s.run(rec{offset: 0, key: "k", payload: "a"})
		b.exec(`update dedup_position set ` + back)
		for name, write := range s.writes() {
			if name == "Reject" && back == "seq = 0" {
				continue // its record is below D: that was decided, and is in the ledger
			}
			require.ErrorIs(t, write(), ledger.ErrClaimLost, "%s after %s", name, back)
		}
		require.Equal(t, "1", b.one(`select count(*) from dedup_ledger`))
		require.Equal(t, "0", b.one(`select w_offset from dedup_position`))
	}
}
