package cold_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger/cold"
)

// slots of a process of its own.
func (b *bundle) slots(group string) *cold.Slots {
	b.Helper()
	s := b.l.Slots(group)
	b.Cleanup(func() { require.NoError(b, s.Close(context.WithoutCancel(b.Context()))) })
	return s
}

func (b *bundle) hold(s *cold.Slots) (int, <-chan struct{}) {
	b.Helper()
	slot, lost, err := s.Hold(b.Context())
	require.NoError(b, err)
	return slot, lost
}

// killLock ends the connection that holds a slot, as seen by the server.
func (b *bundle) killLock(slot int) {
	b.Helper()
	require.Equal(b, "1", b.one(`select count(pg_terminate_backend(pid, 5000)) from pg_locks
		where locktype = 'advisory' and objsubid = 2 and objid = $1 and granted
		  and database = (select oid from pg_database where datname = current_database())`, slot))
}

func awaitClosed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		require.FailNow(t, "waited too long", what)
	}
}

// TestSlotsAtOnce: processes that start at once get 0, 1, 2, ... each its own.
func TestSlotsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 6
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		got  = map[int]int{}
		errs []error
	)
	for range n {
		s := b.slots("g")
		wg.Go(func() {
			slot, _, err := s.Hold(t.Context())
			mu.Lock()
			defer mu.Unlock()
			got[slot]++
			errs = append(errs, err)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, got)
}

// TestSlotsLowestFree: what ends gives its slot back; groups do not share.
func TestSlotsLowestFree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second, third := b.slots("g"), b.slots("g"), b.slots("g")
	for want, s := range []*cold.Slots{first, second, third} {
		slot, _ := b.hold(s)
		require.Equal(t, want, slot)
		slot, _ = b.hold(s)
		require.Equal(t, want, slot, "held already")
	}
	other, _ := b.hold(b.slots("other"))
	require.Zero(t, other, "another group counts from 0")

	require.NoError(t, second.Close(t.Context()))
	_, _, err := second.Hold(t.Context())
	require.Error(t, err, "given back")
	again, _ := b.hold(b.slots("g"))
	require.Equal(t, 1, again)

	moved, err := first.Yield(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, moved, "the next free one")
	freed, _ := b.hold(b.slots("g"))
	require.Zero(t, freed, "what was exchanged is free")
	slot, _ := b.hold(first)
	require.Equal(t, 3, slot)
}

// TestSlotTakenAgain: the lock's connection ends; its process has the same slot
// again, before any lower one, and is told.
func TestSlotTakenAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.slots("g"), b.slots("g")
	b.hold(first)
	_, lost := b.hold(second)
	require.NoError(t, first.Close(t.Context()))
	for range 2 {
		b.killLock(1)
		awaitClosed(t, "the loss of the lock", lost)
		var slot int
		slot, lost = b.hold(second)
		require.Equal(t, 1, slot, "0 is free, but 1 is where its sessions are")
	}
}

// TestSlotTakenByAnother: between the end of the connection and our asking
// another got the lock.
func TestSlotTakenByAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.slots("g")
	_, lost := b.hold(first)
	waiting, err := b.admin.Acquire(t.Context())
	require.NoError(t, err)
	defer waiting.Release()
	class := b.one(`select classid::bigint::bit(32)::int from pg_locks where locktype = 'advisory' and objsubid = 2 and granted
		and database = (select oid from pg_database where datname = current_database())`)
	got := make(chan error, 1)
	go func() {
		_, err := waiting.Exec(t.Context(), "select pg_advisory_lock("+class+", 0)")
		got <- err
	}()
	require.Eventually(t, func() bool {
		return b.one(`select count(*) from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database())`) == "1"
	}, time.Minute, 10*time.Millisecond)
	b.killLock(0)
	require.NoError(t, <-got)
	awaitClosed(t, "the loss of the lock", lost)
	slot, _ := b.hold(first)
	require.Equal(t, 1, slot)
}

// TestSlotConnection: it is told apart from the pool's, and those go by the
// slot's name.
func TestSlotConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.slots("g")
	b.hold(s)
	// Each once: the pool may have opened a second connection.
	const name = `select string_agg(distinct application_name, ', ' order by application_name) from pg_stat_activity
		where datname = current_database() and usename = 'dedup_app'`
	require.Equal(t, "dedup, dedup slot 0 lock", b.one(name))
	b.l.Rename("dedup slot 0")
	require.NoError(t, b.l.Ping(t.Context()))
	require.Eventually(t, func() bool { return b.one(name) == "dedup slot 0, dedup slot 0 lock" }, time.Minute, 10*time.Millisecond)
}
