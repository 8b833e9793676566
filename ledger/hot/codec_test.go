package hot

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func TestValueIsAtMost120Bytes(t *testing.T) {
	t.Parallel()
	f := fact(clock(), strings.Repeat("k", 200), math.MaxInt64)
	f.Scope = strings.Repeat("t", 40) + ":" + strings.Repeat("f", 40)
	f.RetryCount = math.MaxInt64
	b, err := encode(nil, &f)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), 120)
}

func TestEncodeDecode(t *testing.T) {
	t.Parallel()
	now := clock()
	for name, change := range map[string]func(*ledger.Fact){
		"kafka":          func(*ledger.Fact) {},
		"tombstone":      func(f *ledger.Fact) { f.Closed = true },
		"canonical":      func(f *ledger.Fact) { f.HashMode = "edi/1" },
		"repeats":        func(f *ledger.Fact) { f.RetryCount = 12345 },
		"no epoch":       func(f *ledger.Fact) { f.Origin.Epoch, f.Origin.Partition = -1, -1 },
		"far offset":     func(f *ledger.Fact) { f.Origin.Offset = math.MaxInt64 },
		"api":            func(f *ledger.Fact) { f.Origin = ledger.Origin{Gate: ledger.GateAPI, Client: "c", Attempt: "a"} },
		"import":         func(f *ledger.Fact) { f.Origin = ledger.Origin{Gate: ledger.GateImport, Attempt: "2024.csv/12"} },
		"longest window": func(f *ledger.Fact) { f.ExpiresAt = f.FirstSeenAt.Add(400 * 24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fact(now, "k", 8804)
			change(&f)
			b, err := encode(nil, &f)
			require.NoError(t, err)
			got, ok := decode(b)
			require.True(t, ok)
			got.Scope, got.Key = f.Scope, f.Key
			require.Equal(t, stored(f), got)
		})
	}
}

func TestEncodeRefusesImpossibleTimes(t *testing.T) {
	t.Parallel()
	now := clock()
	for name, change := range map[string]func(*ledger.Fact){
		"never seen":           func(f *ledger.Fact) { f.FirstSeenAt = time.Time{} },
		"expires before seen":  func(f *ledger.Fact) { f.ExpiresAt = f.FirstSeenAt.Add(-time.Second) },
		"beyond exact numbers": func(f *ledger.Fact) { f.ExpiresAt = time.UnixMicro(maxMicros + 1) },
	} {
		f := fact(now, "k", 1)
		change(&f)
		_, err := encode(nil, &f)
		require.ErrorIs(t, err, errRange, name)
	}
}

func TestShortTellsAttemptsApart(t *testing.T) {
	t.Parallel()
	api := func(client, attempt string) ledger.Origin {
		return Short(ledger.Origin{Gate: ledger.GateAPI, Client: client, Attempt: attempt})
	}
	again := api("a", "b")
	require.Equal(t, api("a", "b"), again)
	require.NotEqual(t, api("a", "bc"), api("ab", "c"))
	require.NotEqual(t, api("a", "b").Gate, Short(ledger.Origin{Gate: ledger.GateImport}).Gate)
	require.Equal(t, kafkaOrigin(5), Short(kafkaOrigin(5)))
}

// A brace of a partner would choose the slot of a Cluster key (redis/redis#13620).
func TestKeysHoldNothingOfThePartner(t *testing.T) {
	t.Parallel()
	require.Equal(t, "dedup:id:3h7WwrCy7kJUiIdHQJ8gMw", keyOf("dedup:id:", "t:f", "k"))
	seen := map[string]string{}
	for _, key := range []string{"{a}1", "{a}2", "{}", "a\x00b", "", strings.Repeat("x", 200), "\n", "ключ"} {
		k := keyOf("dedup:id:", "t:f", key)
		require.Regexp(t, `^dedup:id:[A-Za-z0-9_-]{22}$`, k)
		require.NotContains(t, seen, k)
		seen[k] = key
	}
	require.NotEqual(t, keyOf("", "t:f", "k"), keyOf("", "t:fk", ""))
}

func FuzzFact(f *testing.F) {
	good := fact(clock(), "k", 8804)
	b, err := encode(nil, &good)
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte("not a fact"))
	f.Add(make([]byte, valueSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := decode(b)
		if !ok {
			require.Equal(t, ledger.Fact{}, got)
			return
		}
		require.False(t, got.ExpiresAt.Before(got.FirstSeenAt))
		if got.Origin.Gate == ledger.GateKafka { // of the others the hash cannot be turned back
			again, err := encode(nil, &got)
			require.NoError(t, err)
			require.Equal(t, b, again)
		}
	})
}
