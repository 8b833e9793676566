package cold_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// session is a filter's session on one raw partition, as far as the ledger sees it.
type session struct {
	b     *bundle
	key   ledger.PositionKey
	claim ledger.Claim
	seq   int64
	d, w  ledger.Position
}

func (b *bundle) session(topic byte, partition int32) *session {
	b.Helper()
	s := &session{b: b, claim: ledger.NewClaim(), key: ledger.PositionKey{
		Partition: ledger.Partition{Topic: ledger.TopicID{topic}, Partition: partition},
		Topic:     fmt.Sprintf("raw-%d", topic), Group: "dedup",
	}}
	created, err := b.l.OpenPosition(b.Context(), s.key, s.claim, ledger.Position{}, nil)
	require.NoError(b, err)
	require.True(b, created)
	return s
}

// take claims the partition for a new session.
func (s *session) take() *session {
	s.b.Helper()
	n := &session{b: s.b, key: s.key, claim: ledger.NewClaim()}
	row, found, err := s.b.l.Claim(s.b.Context(), n.key, n.claim)
	require.NoError(s.b, err)
	require.True(s.b, found)
	n.seq, n.d, n.w = row.Seq, row.D, row.W
	return n
}

// rec is one record: where it lies, its key and what it holds.
type rec struct {
	offset  int64
	scope   string
	key     string
	aliases []string
	payload string
	window  time.Duration
	reason  string
	mode    string
	canon   string
}

func (s *session) registration(r rec) ledger.Registration {
	if r.scope == "" {
		r.scope = "t1:as2"
	}
	if r.window == 0 {
		r.window = time.Hour
	}
	reg := ledger.Registration{
		Origin: ledger.Origin{
			Gate: ledger.GateKafka, Topic: s.key.Partition.Topic, Partition: s.key.Partition.Partition, Offset: r.offset,
		},
		Account: r.scope, Bytes: int64(len(r.payload)), Reason: r.reason,
		PayloadSHA256: sha256.Sum256([]byte(r.payload)), HashMode: ledger.HashRaw,
		SourceService: "gateway",
	}
	if r.mode != "" {
		reg.HashMode, reg.CanonicalSHA256 = r.mode, sha256.Sum256([]byte(r.canon))
	}
	if r.key != "" {
		for _, key := range append([]string{r.key}, r.aliases...) {
			reg.Keys = append(reg.Keys, ledger.Key{Scope: r.scope, Key: key, Window: r.window})
		}
	}
	return reg
}

func (s *session) chunk(records ...rec) *ledger.Chunk {
	c := &ledger.Chunk{Gate: ledger.GateKafka}
	next := s.d
	for _, r := range records {
		reg := s.registration(r)
		c.Registrations = append(c.Registrations, reg)
		next = next.Max(reg.Origin.Next())
	}
	c.Advances = []ledger.Advance{{
		Partition: s.key.Partition, Claim: s.claim, Seq: s.seq, D: s.d, NewD: next, W: s.w,
		Outputs: ledger.Outputs{"clean": {0: s.w.Offset}},
	}}
	return c
}

// register is a chunk that must succeed; the session remembers what it left.
func (s *session) register(records ...rec) *ledger.Answer {
	s.b.Helper()
	c := s.chunk(records...)
	a, err := s.b.l.Register(s.b.Context(), c)
	require.NoError(s.b, err)
	s.seq, s.d = a.Seqs[0], c.Advances[0].NewD
	return a
}

// verdicts are what the filter makes of an answer.
func (s *session) verdicts(a *ledger.Answer, records ...rec) []string {
	s.b.Helper()
	out := make([]string, len(records))
	for i, r := range records {
		reg := s.registration(r)
		switch {
		case a.Results[i].Refused != "":
			out[i] = "INVALID " + a.Results[i].Refused
		case r.key == "":
			out[i] = "INVALID"
		default:
			v, reason := ledger.JudgeResult(&reg, &a.Results[i])
			out[i] = v.String()
			if reason != "" {
				out[i] += " " + reason
			}
		}
	}
	return out
}

// run registers and judges.
func (s *session) run(records ...rec) []string {
	s.b.Helper()
	return s.verdicts(s.register(records...), records...)
}

// hours are the accounts as "scope STATUS count", over all hours.
func (b *bundle) hours() string {
	b.Helper()
	return b.one(`select string_agg(x, ', ' order by x) from (
		select format('%s %s %s', scope, status, sum(count)) x from dedup_hour group by scope, status having sum(count) <> 0) y`)
}

func (b *bundle) counters(key string) string {
	b.Helper()
	return b.one(`select string_agg(format('%s/%s', retry_count, drift_count), ' ' order by first_seen_at) from dedup_ledger where key = $1`, key)
}

func TestRegisterVerdicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)

	first := rec{offset: 0, key: "k1", payload: "a"}
	require.Equal(t, []string{"NEW"}, s.run(first))
	require.Equal(t, []string{"SEEN", "DRIFT", "NEW", "INVALID"}, s.run(
		rec{offset: 1, key: "k1", payload: "a"},
		rec{offset: 2, key: "k1", payload: "b"},
		rec{offset: 3, key: "k2", payload: "a"},
		rec{offset: 4, reason: "key.missing"},
	))
	require.Equal(t, "t1:as2 DRIFT 1, t1:as2 INVALID 1, t1:as2 NEW 2, t1:as2 SEEN 1", b.hours())
	require.Equal(t, "2/1", b.counters("k1"))
	require.Equal(t, "DRIFT/open//k1, INVALID/open/key.missing/, SEEN///k1",
		b.one(`select string_agg(concat_ws('/', status, coalesce(state, ''), coalesce(reason, ''), coalesce(key, '')), ', ' order by status) from dedup_sighting`))
	require.Equal(t, "5 2", b.one(`select d_offset || ' ' || seq from dedup_position`))
}

func TestRegisterAnswersTheRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session(1, 0)

	a := s.register(rec{offset: 0, key: "k1", payload: "a", mode: "edifact", canon: "c"})
	made := a.Results[0]
	require.True(t, made.Inserted)
	require.Equal(t, a.Now.Add(time.Hour), made.Entry.ExpiresAt)

	a = s.register(rec{offset: 1, key: "k1", payload: "b", mode: "edifact", canon: "c"})
	met := a.Results[0]
	require.False(t, met.Inserted)
	require.Equal(t, int64(1), met.Repeat)
	made.Entry.RetryCount = 1
	require.Equal(t, made.Entry, met.Entry)
}
