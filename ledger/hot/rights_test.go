package hot

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// setUser gives a user these rules and no others.
func setUser(t *testing.T, admin *redis.Client, name string, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", name, "reset", "on", ">secret"}
	for _, r := range rules {
		args = append(args, r)
	}
	require.NoError(t, admin.Do(t.Context(), args...).Err())
}

// With the rules of the documentation everything works, and without any single
// one of them something is refused, by a command that the sentence names.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	admin := rawClient(t, addr)
	rules := Rules("dedup:", false)
	setUser(t, admin, "all", rules...)
	asAll := func(c *Config) { c.Username, c.Password = "all", password("secret") }
	h := open(t, addr, asAll)
	require.NoError(t, h.Check(t.Context()))
	now := clock()
	f := fact(now, "k", 1)
	remember(t, h, now, f)
	requireStored(t, h, f)
	_, err := h.Stats(t.Context())
	require.NoError(t, err)
	require.Empty(t, h.Trouble())

	names := map[string]string{
		"~dedup:*": "keys", "+evalsha": "evalsha", "+eval": "'eval'", "+get": "GET", "+set": "SET", Optional: "info",
	}
	require.Len(t, rules, len(names))
	for missing, named := range names {
		// One after the other: each asks with a script that no other has loaded.
		t.Run(missing, func(t *testing.T) {
			require.NoError(t, admin.ScriptFlush(t.Context()).Err())
			user := "no" + missing[1:4]
			setUser(t, admin, user, slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == missing })...)
			var log lines
			h := open(t, addr, func(c *Config) { c.Username, c.Password, c.Log = user, password("secret"), logTo(&log) })
			if missing == Optional {
				require.NoError(t, h.Check(t.Context()))
				_, err := h.Stats(t.Context())
				require.ErrorContains(t, err, named)
				return
			}
			require.ErrorContains(t, h.Check(t.Context()), named)
			require.Contains(t, h.Trouble(), "refused: NOPERM")
			require.Contains(t, h.Trouble(), named)
			require.Equal(t, []string{"WARN Redis refuses a command to this user; going on without it"}, log.all())
		})
	}
}

// A user who may not is told once, however often Redis is asked, and again used
// when he may.
func TestRefusedThenGranted(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	admin := rawClient(t, addr)
	rules := Rules("dedup:", false)
	setUser(t, admin, "dedup", slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == "+set" })...)
	var log lines
	h := open(t, addr, func(c *Config) {
		c.Username, c.Password, c.Log, c.Circuit = "dedup", password("secret"), logTo(&log), Circuit{Errors: 100, Open: time.Millisecond}
	})
	clockHand := time.Now()
	h.circuit.now = func() time.Time { // each look is later than the circuit is open
		clockHand = clockHand.Add(time.Second)
		return clockHand
	}
	now := clock()
	f := fact(now, "k", 1)
	for range 20 {
		_, err := h.Remember(t.Context(), now, []ledger.Fact{f})
		require.True(t, redis.IsPermissionError(err), err)
	}
	require.True(t, h.CircuitOpen())
	setUser(t, admin, "dedup", rules...)
	require.NoError(t, h.Check(t.Context()))
	remember(t, h, now, f)
	requireStored(t, h, f)
	require.Equal(t, []string{"WARN Redis refuses a command to this user; going on without it", "INFO Redis answers again"}, log.all())
}

// Another process's check may still be there.
func TestChecksMeet(t *testing.T) {
	t.Parallel()
	addr := realRedis(t).Addr()
	h := open(t, addr, nil)
	require.NoError(t, rawClient(t, addr).Set(t.Context(), h.base+"check", checkValue, time.Hour).Err())
	require.NoError(t, h.Check(t.Context()))
}

// The page and the rules say the same.
func TestDocumentedGrants(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/rights.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\n"+Grant("filter", "dedup:", false)+"\n")
	require.Contains(t, string(page), "\n"+Grant("filter", "dedup:", true)+"\n")
	require.Contains(t, Grant("", "dedup:", false), "ACL SETUSER default ")
}
