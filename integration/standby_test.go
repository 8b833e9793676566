package integration

import (
	"testing"

	"dedupledger/internal/devservices"

	"github.com/stretchr/testify/require"
)

// bundleOnPair is a bundle on a PostgreSQL of its own with a standby that commits
// do not wait for yet.
func bundleOnPair(t *testing.T, s setup) (b *bundle, primary, standby *devservices.Postgres) {
	t.Helper()
	primary, err := shared.services.StartReplicable(t.Context(), "shared_buffers=32MB")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, primary.Close()) })
	s.Postgres = primary
	b = newBundle(t, s)
	standby, err = shared.services.StartStandby(t.Context(), primary, "one", "shared_buffers=32MB")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Close()) })
	return b, primary, standby
}

// TestRequireSyncStandby: with postgres.require_sync_standby a start ends where a
// person has to set something, and waits where a standby can come back.
func TestRequireSyncStandby(t *testing.T) {
	t.Parallel()
	b, primary, standby := bundleOnPair(t, setup{Partitions: 1})
	demanded := []string{"DEDUP_POSTGRES_REQUIRE_SYNC_STANDBY=true"}
	b.requireFailure(t, demanded, "synchronous_standby_names of PostgreSQL is empty", "or set postgres.require_sync_standby: false")
	require.NoError(t, primary.SetSynchronous(t.Context(), "one"))
	require.NoError(t, primary.AwaitSynchronous(t.Context(), 1))
	b.requireFailure(t, demanded, "role dedup_app may not see whether a standby is attached", "grant pg_read_all_stats to dedup_app")
	require.NoError(t, b.query(t.Context(), "grant pg_read_all_stats to dedup_app", nil))

	require.NoError(t, standby.Stop(t.Context()))
	b.produce(t, orders("acme:edifact", 0, 5)...)
	f := b.launch(t, 0, demanded...)
	f.awaitReason(t, "none of synchronous_standby_names")
	f.awaitLog(t, "waiting until it is")
	require.NoError(t, standby.Start(t.Context()))
	f.awaitReady(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
