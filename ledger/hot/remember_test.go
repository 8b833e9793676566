package hot

import (
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func TestOpenRefusesABadConfig(t *testing.T) {
	t.Parallel()
	_, err := Open(Config{Prefix: "{dedup}:", TTLCap: -1})
	require.ErrorContains(t, err, "no Redis address")
	require.ErrorContains(t, err, "no ledger id")
	require.ErrorContains(t, err, "brace")
	require.ErrorContains(t, err, "not negative")
}

func TestRememberAndGet(t *testing.T) {
	t.Parallel()
	h := open(t, miniredis.RunT(t).Addr(), nil)
	now := clock()
	a, b := fact(now, "a", 1), fact(now, "b", 2)
	requireAbsent(t, h, a)
	require.Empty(t, remember(t, h, now, a, b))
	requireStored(t, h, a)
	requireStored(t, h, b)
	a.RetryCount, a.Inserted = 4, false
	require.Empty(t, remember(t, h, now, a))
	requireStored(t, h, a)
}

func TestTTLIsWhatIsLeftOfTheWindow(t *testing.T) {
	t.Parallel()
	now := ledger.Clock{Postgres: time.Unix(1_700_000_000, 0).UTC(), Local: time.Now()}
	row := func(window, age time.Duration, closed bool) *ledger.Fact {
		first := now.Postgres.Add(-age)
		return &ledger.Fact{FirstSeenAt: first, ExpiresAt: first.Add(window), Closed: closed}
	}
	const hour = time.Hour
	for name, c := range map[string]struct {
		f              *ledger.Fact
		elapsed, limit time.Duration
		want           time.Duration
	}{
		"fresh":                       {row(hour, 0, false), 0, 0, hour},
		"age is taken off":            {row(hour, 10*time.Minute, false), 0, 0, 50 * time.Minute},
		"the way is taken off":        {row(hour, 0, false), 7 * time.Millisecond, 0, hour - 7*time.Millisecond},
		"rounded down":                {row(hour, 0, false), time.Microsecond, 0, hour - time.Millisecond},
		"over on the way":             {row(time.Second, 0, false), time.Second, 0, 0},
		"expired":                     {row(hour, 2*hour, false), 0, 0, 0},
		"capped":                      {row(hour, 0, false), 0, time.Minute, time.Minute},
		"capped, and late":            {row(hour, 0, false), 2 * time.Second, time.Minute, 58 * time.Second},
		"cap beyond the end":          {row(hour, 0, false), 0, 2 * hour, hour},
		"tombstone outlives":          {row(hour, 0, true), 0, 0, hour + tombstoneMargin},
		"tombstone of an expired row": {row(hour, 2*hour, true), 0, 0, 0},
	} {
		require.Equal(t, c.want.Milliseconds(), ttl(c.f, now, c.elapsed, c.limit), name)
	}
}

func TestRememberSetsNoFreshWindow(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	h := open(t, m.Addr(), func(c *Config) { c.TTLCap = 30 * time.Minute })
	now := clock()
	now.Local = now.Local.Add(-time.Second) // the answer took a second
	long, old, gone := fact(now, "long", 1), fact(now, "old", 2), fact(now, "gone", 3)
	old.FirstSeenAt, old.ExpiresAt = now.Postgres.Add(-time.Hour), now.Postgres.Add(5*time.Second)
	gone.FirstSeenAt, gone.ExpiresAt = now.Postgres.Add(-time.Hour), now.Postgres.Add(time.Second)
	require.Empty(t, remember(t, h, now, long, old, gone))
	left := func(f ledger.Fact) time.Duration { return m.TTL(keyOf(h.base, f.Scope, f.Key)) }
	require.LessOrEqual(t, left(long), 30*time.Minute-time.Second)
	require.LessOrEqual(t, left(old), 4*time.Second)
	require.Positive(t, left(old))
	requireAbsent(t, h, gone)
	for _, key := range m.Keys() {
		require.Positive(t, m.TTL(key), "a key without an end")
	}
}

func TestOlderFactGivesWay(t *testing.T) {
	t.Parallel()
	h := open(t, miniredis.RunT(t).Addr(), nil)
	now := clock()
	older, newer := fact(now, "k", 1), fact(now, "k", 2)
	older.FirstSeenAt = now.Postgres.Add(-time.Microsecond)
	require.Empty(t, remember(t, h, now, newer))
	older.Inserted = true
	require.Empty(t, remember(t, h, now, older), "a fact that was overtaken is no witness")
	requireStored(t, h, newer)
}

func TestTombstoneStays(t *testing.T) {
	t.Parallel()
	h := open(t, miniredis.RunT(t).Addr(), nil)
	now := clock()
	row := fact(now, "k", 1)
	closed := row
	closed.Closed, closed.Inserted = true, false
	older := fact(now, "k", 9)
	older.FirstSeenAt = now.Postgres.Add(-time.Minute)
	require.Empty(t, remember(t, h, now, row))
	require.Empty(t, remember(t, h, now, closed))
	requireStored(t, h, closed)
	require.Empty(t, remember(t, h, now, row, older))
	requireStored(t, h, closed)
	next := fact(now, "k", 2)
	next.FirstSeenAt = now.Postgres.Add(time.Microsecond)
	require.Empty(t, remember(t, h, now, next), "a tombstone is no witness")
	requireStored(t, h, next)
	require.Empty(t, remember(t, h, now, closed), "a tombstone of an older row")
	requireStored(t, h, next)
}

func TestWitness(t *testing.T) {
	t.Parallel()
	now := clock()
	was := fact(now, "k", 1)
	was.FirstSeenAt = now.Postgres.Add(-time.Minute)
	api := was
	api.Origin = ledger.Origin{Gate: ledger.GateAPI, Client: "gw", Attempt: "7"}
	made := fact(now, "k", 2)
	for name, c := range map[string]struct {
		was  ledger.Fact
		now  func(*ledger.Fact)
		want bool
	}{
		"another origin, no row":     {was, func(*ledger.Fact) {}, true},
		"another gate, no row":       {api, func(*ledger.Fact) {}, true},
		"Postgres had the row":       {was, func(f *ledger.Fact) { f.Inserted = false }, false},
		"its own origin":             {was, func(f *ledger.Fact) { f.Origin = was.Origin }, false},
		"its own attempt":            {api, func(f *ledger.Fact) { f.Origin = api.Origin }, false},
		"expired when it was asked":  {was, func(f *ledger.Fact) { f.FirstSeenAt = was.ExpiresAt; f.ExpiresAt = was.ExpiresAt.Add(time.Hour) }, false},
		"a tombstone is written now": {was, func(f *ledger.Fact) { f.Closed = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, miniredis.RunT(t).Addr(), nil)
			first := c.was
			first.Inserted = false
			require.Empty(t, remember(t, h, now, first))
			f := made
			c.now(&f)
			got := remember(t, h, now, f)
			if !c.want {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []ledger.Witness{{Fact: f, Was: Short(c.was.Origin), WasSeen: c.was.FirstSeenAt}}, got)
			requireStored(t, h, f)
		})
	}
}

func TestForeignValuesAreOverwritten(t *testing.T) {
	t.Parallel()
	now := clock()
	ahead := fact(now, "k", 1)
	ahead.FirstSeenAt = now.Postgres.Add(2 * time.Hour)
	ahead.ExpiresAt = ahead.FirstSeenAt.Add(time.Hour)
	future, err := encode(nil, &ahead)
	require.NoError(t, err)
	version2 := append([]byte{2}, future[1:]...)
	flags := append([]byte(nil), future...)
	flags[1] = 0xff
	for name, value := range map[string]string{
		"empty": "", "short": "x", "number": "1", "same length": string(make([]byte, valueSize)),
		"another version": string(version2), "first seen ahead of Postgres": string(future), "unknown flags": string(flags),
		"long": string(make([]byte, 4096)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := miniredis.RunT(t)
			h := open(t, m.Addr(), nil)
			f, neighbour := fact(now, "k", 2), fact(now, "n", 3)
			require.NoError(t, m.Set(keyOf(h.base, f.Scope, f.Key), value))
			if name != "first seen ahead of Postgres" { // a reader without a clock cannot know
				requireAbsent(t, h, f)
			}
			require.Empty(t, remember(t, h, now, f, neighbour))
			requireStored(t, h, f)
			requireStored(t, h, neighbour)
		})
	}
}

func TestAFactOutOfRangeHarmsNoNeighbour(t *testing.T) {
	t.Parallel()
	h := open(t, miniredis.RunT(t).Addr(), nil)
	now := clock()
	bad, good := fact(now, "bad", 1), fact(now, "good", 2)
	bad.FirstSeenAt = time.Time{}
	_, err := h.Remember(t.Context(), now, []ledger.Fact{bad, good})
	require.ErrorIs(t, err, errRange)
	requireStored(t, h, good)
	require.False(t, h.CircuitOpen())
}

// TestNothingLeftToTell: where the windows of all facts have ended Redis is not
// asked, and nobody takes them for remembered.
func TestNothingLeftToTell(t *testing.T) {
	t.Parallel()
	h := open(t, "127.0.0.1:1", nil)
	now := clock()
	over := fact(now, "over", 1)
	over.FirstSeenAt, over.ExpiresAt = now.Postgres.Add(-2*time.Hour), now.Postgres.Add(-time.Hour)
	_, err := h.Remember(t.Context(), now, []ledger.Fact{over})
	require.ErrorIs(t, err, ledger.ErrOver)
	require.False(t, h.CircuitOpen())
}

func TestAWholeBatch(t *testing.T) {
	t.Parallel()
	// A stand-in runs 2000 scripts slowly, under the race detector for seconds.
	h := open(t, miniredis.RunT(t).Addr(), func(c *Config) { c.Timeout = time.Minute })
	now := clock()
	facts := make([]ledger.Fact, 2000)
	for i := range facts {
		facts[i] = fact(now, strconv.Itoa(i), int64(i))
	}
	require.Empty(t, remember(t, h, now, facts...))
	requireStored(t, h, facts[0])
	requireStored(t, h, facts[1999])
}
