package integration

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMigratePlan: before the first migration the plan has every statement with
// what it locks, for people and for machines; after it, what every run does.
func TestMigratePlan(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Unprepared: true})
	owner := []string{"DEDUP_POSTGRES_URL=" + b.db.OwnerURL}
	type statement struct {
		Migration, SQL string
		Locks          map[string]string
		Scans          []string
	}
	plan := func() (all []statement) {
		require.NoError(t, json.Unmarshal([]byte(b.command(t, owner, "migrate", "plan", "-o", "json")), &all))
		return all
	}
	require.Contains(t, b.command(t, owner, "migrate", "plan"),
		"-- >> locks dedup_ledger: SHARE UPDATE EXCLUSIVE (reading and writing go on); ")
	before := plan()
	require.Greater(t, len(before), 20)
	b.migrate(t)
	after := plan()
	require.Len(t, after, 1)
	require.Equal(t, before[len(before)-1], after[0])
	require.Equal(t, map[string]string{"dedup_ledger": "SHARE UPDATE EXCLUSIVE", "dedup_sighting": "SHARE UPDATE EXCLUSIVE"}, after[0].Locks)
}
