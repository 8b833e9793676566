package cold_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func (s *session) learned(v ledger.Verdict, r rec, first time.Time) ledger.Learned {
	reg := s.registration(r)
	o := ledger.Learned{
		Verdict: v, Origin: reg.Origin, Account: reg.Account, Reason: r.reason, Bytes: reg.Bytes,
		PayloadSHA256: reg.PayloadSHA256, SourceService: reg.SourceService,
	}
	if len(reg.Keys) > 0 {
		o.Key = reg.Keys[0]
		if v == ledger.New {
			o.Aliases = r.aliases
		}
		o.FirstSeenAt, o.ExpiresAt = first, first.Add(reg.Keys[0].Window)
	}
	return o
}

func (s *session) learn(to int64, seq int64, learned ...ledger.Learned) (int64, ledger.Position) {
	s.b.Helper()
	newSeq, d, err := s.b.l.Learn(s.b.Context(), s.lesson(to, seq, learned...))
	require.NoError(s.b, err)
	return newSeq, d
}

func (s *session) lesson(to int64, seq int64, learned ...ledger.Learned) *ledger.Lesson {
	return &ledger.Lesson{
		Partition: s.key.Partition, Claim: s.claim, Learned: learned, Seq: seq, KnownSeq: s.seq, KnownD: s.d,
		To: ledger.Position{Offset: to}, Outputs: ledger.Outputs{"clean": {3: 9}},
	}
}

// ago is an instant that PostgreSQL keeps exactly.
func ago(d time.Duration) time.Time { return time.Now().UTC().Add(-d).Truncate(time.Microsecond) }

func TestLearn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	first := ago(40 * 24 * time.Hour) // a month that is not there
	window := 60 * 24 * time.Hour
	outputs := []ledger.Learned{
		s.learned(ledger.New, rec{offset: 0, key: "k", payload: "a", window: window}, first),
		s.learned(ledger.Seen, rec{offset: 1, key: "k", payload: "a", window: window}, first),
		s.learned(ledger.Drift, rec{offset: 4, key: "k", payload: "b", window: window}, first),
		s.learned(ledger.Invalid, rec{offset: 5, reason: "key.missing", payload: "c"}, time.Time{}),
	}
	lesson := s.lesson(8, 41, outputs...)
	lesson.Gaps = []ledger.Range{{From: ledger.Position{Offset: 2}, To: ledger.Position{Offset: 4}}}
	for range 2 { // a lost answer
		_, d, err := b.l.Learn(t.Context(), lesson)
		require.NoError(t, err)
		require.Equal(t, ledger.Position{Offset: 8}, d)
	}
	require.Equal(t, "43", b.one(`select seq from dedup_position`), "the marker's seq and one more, per lesson")
	require.Equal(t, `8/8/{"clean": {"3": 9}}`, b.one(`select concat_ws('/', d_offset, w_offset, outputs) from dedup_position`))
	require.Equal(t, "t1:as2 DRIFT 1, t1:as2 INVALID 1, t1:as2 NEW 1, t1:as2 SEEN 1", b.hours())
	require.Equal(t, "2/1", b.counters("k"))
	require.Equal(t, first.Truncate(time.Hour).Format(time.RFC3339),
		b.one(`select to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') from dedup_hour where status = 'NEW'`))
	require.Equal(t, "2-4", b.one(`select string_agg(from_offset || '-' || to_offset, ', ' order by from_offset) from dedup_gap where kind = 'no_output'`))
	require.Equal(t, "3", b.one(`select count(*) from dedup_sighting`))

	// What was learned decides from here on, also beyond the flow's own window.
	n := s.take()
	require.Equal(t, []string{"SEEN"}, n.run(rec{offset: 8, key: "k", payload: "a"}))
}

// TestLearnABrokenRecordFirst: a lesson may have no repeat of a key before its
// first INVALID.
func TestLearnABrokenRecordFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	_, d := s.learn(2, 1,
		s.learned(ledger.Invalid, rec{offset: 0, reason: "key.missing", payload: "c"}, time.Time{}),
		s.learned(ledger.Seen, rec{offset: 1, key: "gone", payload: "a"}, ago(time.Hour)))
	require.Equal(t, ledger.Position{Offset: 2}, d)
	require.Equal(t, "t1:as2 INVALID 1, t1:as2 SEEN 1", b.hours())
	require.Equal(t, "2", b.one(`select count(*) from dedup_sighting`))
}

func TestLearnedNewIsAFact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.session(1, 0), b.session(1, 1)
	require.Equal(t, []string{"NEW"}, other.run(rec{offset: 0, key: "k", payload: "a"}))

	s.learn(1, 0, s.learned(ledger.New, rec{offset: 0, key: "k", payload: "a"}, ago(time.Minute)))
	require.Equal(t, "learned", b.one(`select closed_by from dedup_ledger where origin_partition = 1`))
	require.Equal(t, []string{"SEEN"}, other.run(rec{offset: 1, key: "k", payload: "a"}))

	// A fact whose window is over closes nothing.
	s.learn(2, 0, s.learned(ledger.New, rec{offset: 1, key: "k", payload: "a"}, ago(2*time.Hour)))
	require.Equal(t, "1", b.one(`select count(*) from dedup_ledger where closed_at is null and expires_at > now()`))
}

func TestLearnBelowDCountsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "a"})
	before := b.hours()
	s.learn(2, 7,
		s.learned(ledger.New, rec{offset: 0, key: "k", payload: "a"}, ago(time.Second)),
		s.learned(ledger.Seen, rec{offset: 1, key: "k", payload: "a"}, ago(time.Second)))
	require.Equal(t, before, b.hours())
	require.Equal(t, "1/0", b.counters("k"))
	require.Equal(t, "1", b.one(`select count(*) from dedup_sighting`))
	require.Equal(t, "0", b.one(`select count(*) from dedup_gap`))
}

func TestLearnUnderALostClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.take()
	_, _, err := b.l.Learn(t.Context(), s.lesson(1, 0, s.learned(ledger.New, rec{offset: 0, key: "k"}, ago(0))))
	require.ErrorIs(t, err, ledger.ErrClaimLost)
	require.Equal(t, "0", b.one(`select count(*) from dedup_ledger`))
}

func TestReject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	records := []rec{
		{offset: 0, key: "k", payload: "a"},
		{offset: 1, key: "k", payload: "a"},
		{offset: 2, key: "k", payload: "b"},
		{offset: 3, key: "k", payload: "a"},
	}
	require.Equal(t, []string{"NEW", "SEEN", "DRIFT", "SEEN"}, s.run(records...))
	for range 2 {
		reg := s.registration(records[0])
		require.NoError(t, b.l.Reject(t.Context(), s.claim, &reg, "output.rejected"))
		require.Equal(t, "t1:as2 DRIFT 1, t1:as2 INVALID 1, t1:as2 SEEN 2", b.hours())
		require.Equal(t, "4", b.one(`select count(*) from dedup_sighting`))
	}
	require.Equal(t, "open output.rejected k", b.one(`select concat_ws(' ', state, reason, key) from dedup_sighting where status = 'INVALID'`))

	// The halves come again: the first keeps its verdict, its copies now have a
	// first of their own, and the accounts say what the verdicts say.
	require.Equal(t, []string{"INVALID output.rejected", "NEW", "DRIFT", "SEEN"}, s.run(records...))
	require.Equal(t, "t1:as2 DRIFT 1, t1:as2 INVALID 1, t1:as2 NEW 1, t1:as2 SEEN 1", b.hours())
	require.Equal(t, "0/0 2/1", b.counters("k"))
	require.Equal(t, "3", b.one(`select count(*) from dedup_sighting`))
	sum := b.one(`select sum(count) from dedup_hour`)

	// And once more nothing moves.
	require.Equal(t, []string{"INVALID output.rejected", "NEW", "DRIFT", "SEEN"}, s.run(records...))
	require.Equal(t, "0/0 2/1", b.counters("k"))
	require.Equal(t, sum, b.one(`select sum(count) from dedup_hour`))
	require.Equal(t, "4", sum)
}

func TestRejectARepeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"}, rec{offset: 1, key: "k", payload: "b"}, rec{offset: 2, reason: "key.missing"})
	for range 2 {
		for _, r := range []rec{{offset: 1, key: "k", payload: "b"}, {offset: 2, reason: "key.missing"}} {
			reg := s.registration(r)
			require.NoError(t, b.l.Reject(t.Context(), s.claim, &reg, "output.rejected"))
		}
		require.Equal(t, "t1:as2 INVALID 2, t1:as2 NEW 1", b.hours())
		require.Equal(t, "2", b.one(`select count(*) from dedup_sighting where status = 'INVALID' and state = 'open'`))
		require.Equal(t, "0/0", b.counters("k"), "the row counts it no more")
	}
	require.Equal(t, "1", b.one(`select count(*) from dedup_ledger where closed_at is null`), "the row of another record stays")
}

// A repeat was refused by its output, and comes again when the first has been refused
// too: it is no repeat of the first any more, and is not taken off it twice.
func TestRejectARepeatAndItsFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	records := []rec{{offset: 0, key: "k", payload: "a"}, {offset: 1, key: "k", payload: "a"}, {offset: 2, key: "k", payload: "b"}}
	require.Equal(t, []string{"NEW", "SEEN", "DRIFT"}, s.run(records...))
	for _, r := range []rec{records[2], records[0]} {
		reg := s.registration(r)
		require.NoError(t, b.l.Reject(t.Context(), s.claim, &reg, "output.rejected"))
	}
	require.Equal(t, "1/0", b.counters("k"))
	require.Equal(t, []string{"INVALID output.rejected", "NEW", "DRIFT"}, s.run(records...))
	require.Equal(t, "0/0 1/1", b.counters("k"))
	require.Equal(t, "t1:as2 DRIFT 1, t1:as2 INVALID 1, t1:as2 NEW 1", b.hours())
	reg := s.registration(records[2])
	require.NoError(t, b.l.Reject(t.Context(), s.claim, &reg, "output.rejected"))
	require.Equal(t, "0/0 0/0", b.counters("k"))
	require.Equal(t, "t1:as2 INVALID 2, t1:as2 NEW 1", b.hours())
}

func TestRejectUnderALostClaimOrUndecided(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)
	s.run(rec{offset: 0, key: "k", payload: "a"})
	ahead := s.registration(rec{offset: 1, key: "k2", payload: "a"})
	require.ErrorIs(t, b.l.Reject(t.Context(), s.claim, &ahead, "output.rejected"), ledger.ErrClaimLost)
	reg := s.registration(rec{offset: 0, key: "k", payload: "a"})
	require.ErrorIs(t, b.l.Reject(t.Context(), ledger.NewClaim(), &reg, "output.rejected"), ledger.ErrClaimLost)
	require.Equal(t, "t1:as2 NEW 1", b.hours())
}

func TestCountWitnesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	was := ledger.Origin{Gate: ledger.GateKafka, Topic: ledger.TopicID{7}, Partition: 3, Offset: 12}
	fact := ledger.Fact{Origin: ledger.Origin{Gate: ledger.GateKafka}, PayloadSHA256: sha256.Sum256(nil)}
	for range 2 {
		require.NoError(t, b.l.CountWitnesses(t.Context(), []ledger.Witness{{Fact: fact, Was: was}, {Fact: fact, Was: was}}))
	}
	require.Equal(t, "4 0", b.one(`select witness_kafka || ' ' || witness_api from dedup_meta`))
	require.Contains(t, b.one(`select witness_last from dedup_meta`), "/3/0/12")
}

// A record was NEW, its row gave way to a learned fact, and it comes again: the
// accounts follow its new verdict, once.
func TestWhatWasNewIsSeenAfterLearning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	learner, loser := b.session(1, 0), b.session(1, 1)
	records := []rec{{offset: 0, key: "k0", payload: "a"}, {offset: 1, key: "k", payload: "b"}, {offset: 2, key: "k", payload: "b"}}
	require.Equal(t, []string{"NEW", "NEW", "SEEN"}, loser.run(records...))
	learner.learn(1, 0, learner.learned(ledger.New, rec{offset: 0, key: "k", payload: "a"}, ago(time.Minute)))
	for range 2 {
		again := loser.take()
		require.Equal(t, []string{"NEW", "DRIFT", "DRIFT"}, again.run(records...))
		require.Equal(t, "t1:as2 DRIFT 2, t1:as2 NEW 2", b.hours())
		require.Equal(t, "2/2 0/0", b.counters("k"))
		require.Equal(t, "2", b.one(`select count(*) from dedup_sighting where status = 'DRIFT' and state = 'open'`))
	}
}
