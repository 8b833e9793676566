package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withRules is the bundle's configuration with other rules of one's own, in a file
// beside it.
func (b *bundle) withRules(t *testing.T, flows string) *bundle {
	t.Helper()
	text, err := os.ReadFile(b.config)
	require.NoError(t, err)
	plain, _, _ := strings.Cut(string(text), "flows:")
	config := b.config + ".other"
	require.NoError(t, os.WriteFile(config, []byte(plain+"flows:\n"+flows), 0o600))
	return &bundle{config: config, dir: b.dir, db: b.db, restricted: b.restricted}
}

// TestTwoSetsOfRules: a process with other rules than the active ones does not
// filter, and says which rule and line. When they are made active the first stops
// and the other takes over; what the old chain has found is not found any more, and
// was counted. Back again, the first goes on in the same process.
func TestTwoSetsOfRules(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2, Flows: `- {match: "acme:as2", extractors: [header, edifact]}`})
	first := b.start(t, 0)
	active := ask[string](t, b, `select fingerprint from dedup_meta`)
	b.produce(t, order("acme:as2", "1", 5), order("acme:as2", "2", 5), order("beta:as2", "1", 5))
	b.awaitOutputs(t)

	other := b.withRules(t, "  - {match: \"acme:as2\", extractors: [header, x12]}\n")
	second := other.launch(t, 1)
	second.awaitReason(t, "flows[0] acme:as2 ("+other.config+":")
	second.awaitReason(t, "extractors is header, x12 here and header, edifact in the active rules ("+b.config+":")
	b.awaitSQL(t, `select count(*) > 0 from pg_stat_activity where datname = current_database() and application_name = 'dedup slot 0 rules ' || $1`, active)

	shown := b.try(t, nil, "doctor").stdout
	require.Contains(t, shown, "fingerprint "+active+" is active, and on 1 of 2 processes")
	require.Contains(t, shown, "1 process not filtering")
	doctor := other.try(t, nil, "doctor")
	require.Equal(t, 1, doctor.code)
	require.Contains(t, doctor.stdout, "the rules that make keys are not the active ones")

	const counted = "3 live keys: 2 will not be found by these rules, 0 may get another key first\n"
	require.Contains(t, other.command(t, nil, "config", "activate", "--dry-run"), counted)
	require.Equal(t, active, ask[string](t, b, `select fingerprint from dedup_meta`), "a dry run")
	first.awaitReady(t)
	require.Contains(t, other.command(t, nil, "config", "activate", "--reason", "INC-7"), counted)
	require.Contains(t, other.command(t, nil, "config", "activate"), "are the active ones")
	require.Equal(t, "config.activate INC-7 2", ask[string](t, b, `select string_agg(concat_ws(' ', kind, reason, detail->>'lost'), ', ') from dedup_action`))

	second.awaitReady(t)
	first.awaitReason(t, "extractors is header, edifact here and header, x12 in the active rules")
	second.awaitPartitions(t, 2)
	changed := order("acme:as2", "1", 5) // no key by the new chain
	changed.Want = want{Code: "key.not_found"}
	b.produce(t, changed, order("beta:as2", "1", 5))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 3, "SEEN": 1, "INVALID": 1}, b.statuses(t))

	b.command(t, nil, "config", "activate")
	first.awaitReady(t)
	first.awaitPartitions(t, 2)
	b.produce(t, order("acme:as2", "1", 5), order("acme:as2", "3", 5))
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 4, "SEEN": 2, "INVALID": 1}, b.statuses(t))
	first.term(t)
	second.term(t)
	b.checkStopped(t)
}

// TestPayloadHashOfAFlow: where a rule says hash: edi, another line end is no DRIFT
// and another quantity is; the ledger keeps the second hash with its mode.
func TestPayloadHashOfAFlow(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1, Flows: `- {match: "acme:edi", hash: edi}`})
	f := b.start(t, 0)
	for _, scope := range []string{"acme:edi", "acme:raw"} {
		first := order(scope, "1", 5)
		wrapped := first
		wrapped.Value = []byte(strings.ReplaceAll(string(first.Value), "'\n", "'\r\n"))
		b.produce(t, first, wrapped, order(scope, "1", 6))
	}
	b.awaitOutputs(t)
	require.Equal(t, map[string]int{"NEW": 2, "SEEN": 1, "DRIFT": 3}, b.statuses(t))
	require.Equal(t, "SEEN", b.outputOf(t, 1).Status())
	require.Equal(t, "hash.edi/1", header(b.outputOf(t, 2).Record, "dedup-reason"))
	require.Equal(t, "edi edi/1 32, raw raw", ask[string](t, b,
		`select string_agg(concat_ws(' ', flow, hash_mode, octet_length(canonical_sha256)), ', ' order by flow) from dedup_ledger`))
	require.Equal(t, "hash.edi/1", ask[string](t, b, `select reason from dedup_sighting where status = 'DRIFT' and flow = 'edi'`))
	f.term(t)
}
