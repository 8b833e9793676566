package cold_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// TestFirstRules: on an empty ledger the first process's rules are active, of two
// at once those of one; on one that has keys nobody's are.
func TestFirstRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.open(cold.Config{})
	none, err := l.ActiveRules(t.Context())
	require.NoError(t, err)
	require.Empty(t, none.Fingerprint)
	require.Nil(t, none.Text)
	require.True(t, none.Empty)

	var wg sync.WaitGroup
	got := make([]ledger.Rules, 8)
	for i := range got {
		wg.Go(func() {
			r := ledger.Rules{Fingerprint: string(rune('a' + i)), Text: []byte(`["` + string(rune('a'+i)) + `"]`)}
			var err error
			if got[i], err = l.FirstRules(t.Context(), r, false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range got {
		require.Equal(t, got[0], got[i])
	}
	require.JSONEq(t, `["`+got[0].Fingerprint+`"]`, string(got[0].Text))
	require.WithinDuration(t, time.Now(), got[0].Since, time.Hour)

	b.exec("update dedup_meta set fingerprint = null, rules = null")
	b.exec("insert into dedup_scope (scope) values ('acme:as2')")
	active, err := l.FirstRules(t.Context(), ledger.Rules{Fingerprint: "x", Text: []byte("[]")}, false)
	require.NoError(t, err)
	require.Empty(t, active.Fingerprint, "its keys were made by others")
	require.False(t, active.Empty)
	active, err = l.FirstRules(t.Context(), ledger.Rules{Fingerprint: "x", Text: []byte("[]")}, true)
	require.NoError(t, err)
	require.Equal(t, "x", active.Fingerprint)
}

func TestActivateRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.open(cold.Config{})
	act := ledger.Action{Actor: "maria", Kind: "config.activate", Place: "new", Reason: "because", Detail: map[string]int{"lost": 7}}
	now := ledger.Rules{Fingerprint: "new", Text: []byte(`[1]`)}
	require.ErrorIs(t, l.ActivateRules(t.Context(), act, "other", now), ledger.ErrRulesChanged)
	require.Equal(t, "0", b.one("select count(*)::text from dedup_action"))
	require.NoError(t, l.ActivateRules(t.Context(), act, "", now))
	require.ErrorIs(t, l.ActivateRules(t.Context(), act, "", now), ledger.ErrRulesChanged, "somebody was faster")
	require.Equal(t, `maria config.activate new because {"lost": 7}`,
		b.one("select string_agg(concat_ws(' ', actor, kind, place, reason, detail), ', ') from dedup_action"))
	active, err := l.ActiveRules(t.Context())
	require.NoError(t, err)
	require.Equal(t, "new", active.Fingerprint)
}

// TestLiveKeys: rows that are closed, over, or aliases are not counted, and months
// are read from the first that can hold a live row.
func TestLiveKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.open(cold.Config{})
	b.exec(`insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, closed_at, closed_by, alias_of, origin_gate, scope, key, payload_sha256, hash_mode, flow)
		select 1, now() - interval '1 minute', now(), ends, closed, case when closed is not null then 'x' end, alias, 3, 'acme:all', key, decode(repeat('00', 32), 'hex'), 'raw', 'as2'
		from (values ('edifact:1', now() + interval '1 day', null::timestamptz, null), ('edifact:2', now() + interval '1 day', null, null), ('hdr:x', now() + interval '1 day', null, null),
			('edifact:3', now() + interval '1 day', now(), null), ('edifact:4', now() - interval '1 second', null, null),
			('as2:1', now() + interval '1 day', null, 'edifact:1')) as x (key, ends, closed, alias)`)
	var months []time.Time
	keys, err := l.LiveKeys(t.Context(), func(month time.Time) { months = append(months, month) })
	require.NoError(t, err)
	require.ElementsMatch(t, []ledger.LiveKeys{
		{Scope: "acme:all", Flow: "as2", Scheme: "edifact", Count: 2}, {Scope: "acme:all", Flow: "as2", Scheme: "hdr", Count: 1},
	}, keys)
	require.NotEmpty(t, months)
	b.exec("insert into dedup_scope (scope, max_window) values ('acme:all', 34560000)")
	months = nil
	_, err = l.LiveKeys(t.Context(), func(month time.Time) { months = append(months, month) })
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(months), 13, "a row of 400 days may be live")
}
