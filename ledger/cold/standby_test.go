package cold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// TestRequireSyncStandby: the roles of one server are shared, so what needs a
// grant or a standby is tested beside the program.
func TestRequireSyncStandby(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := cold.Open(t.Context(), cold.Config{URL: b.url("dedup_app"), RequireSyncStandby: true})
	require.ErrorIs(t, err, ledger.ErrSchema)
	require.ErrorContains(t, err, "synchronous_standby_names of PostgreSQL is empty, so commits wait for no standby: name one there, or set postgres.require_sync_standby: false")

	s, err := cold.AskStandby(t.Context(), b.admin)
	require.NoError(t, err)
	require.Equal(t, cold.Standby{Commit: "on", Seen: true, Role: s.Role}, s)
}
