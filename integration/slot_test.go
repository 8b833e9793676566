package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// auto lets the filter take its slot from the ledger's locks. The session timeout
// is far above what these tests wait for: what moves, moves for another reason.
var auto = []string{"DEDUP_PROCESSOR_SLOT=auto", "DEDUP_KAFKA_SESSION_TIMEOUT=5m"}

// place of a filter: its slot and what it consumes.
type filterPlace struct {
	Slot    int
	Running []string
}

// where tells a filter's slot and partitions.
func (f *filter) where(t *testing.T) (at filterPlace) {
	t.Helper()
	_, body, err := f.get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(body), &at), body)
	return at
}

// awaitPlace is where, once so many partitions run. They stand still for a moment
// when a member of the group comes back.
func (f *filter) awaitPlace(t *testing.T, partitions int) (at filterPlace) {
	t.Helper()
	f.await(t, readyWithin, func() string { return fmt.Sprintf("%d partitions run, not %d", len(at.Running), partitions) }, func() bool {
		_, body, err := f.get(t.Context(), "/readyz")
		at = filterPlace{}
		return err == nil && json.Unmarshal([]byte(body), &at) == nil && len(at.Running) == partitions
	})
	return at
}

// awaitSlot waits until the filter has that slot.
func (f *filter) awaitSlot(t *testing.T, slot int) {
	t.Helper()
	f.await(t, readyWithin, func() string { return fmt.Sprintf("the slot is not %d", slot) }, func() bool {
		var at filterPlace
		_, body, err := f.get(t.Context(), "/readyz")
		return err == nil && json.Unmarshal([]byte(body), &at) == nil && at.Slot == slot
	})
}

func (f *filter) rebalances(t *testing.T) float64 {
	t.Helper()
	v, err := f.metric(t.Context(), "dedup_rebalances_total")
	require.NoError(t, err)
	return v
}

// slotLock is a lock that is held in the bundle's database.
const slotLock = `from pg_locks where locktype = 'advisory' and objsubid = 2 and granted
	and database = (select oid from pg_database where datname = current_database())`

// TestSlotsAtOnceOneKilled: two processes at the default start at once and get
// 0 and 1; one is killed, and a third takes its slot and with it its partitions,
// without the other's noticing.
func TestSlotsAtOnceOneKilled(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{Topics: []string{"as2", "as4"}, Partitions: 4})
	f, g := b.launch(t, 0, auto...), b.launch(t, 1, auto...)
	one, other := f.awaitPlace(t, 4), g.awaitPlace(t, 4)
	t.Logf("started at once: slot %d with %v, slot %d with %v", one.Slot, one.Running, other.Slot, other.Running)
	require.ElementsMatch(t, []int{0, 1}, []int{one.Slot, other.Slot})

	l := b.startLoad(t, rng, "s", 8)
	l.passMore(t, 500)
	undisturbed := g.rebalances(t)
	f.kill(t)
	killed := time.Now()
	h := b.launch(t, 2, auto...)
	third := h.awaitPlace(t, 4)
	t.Logf("slot %d killed; %s later the third process, with slot %d, consumes %v", one.Slot, time.Since(killed).Round(time.Millisecond), third.Slot, third.Running)
	require.Equal(t, one, third, "slot and partitions of the killed one")
	l.passMore(t, 500)
	require.Equal(t, other, g.awaitPlace(t, 4))
	require.InDelta(t, undisturbed, g.rebalances(t), 0, "rebalances that the other saw")
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	g.term(t)
	h.term(t)
	b.checkStopped(t)
}

// TestSlotLost: the connection that holds the lock is ended again and again,
// under load: the filter has the same slot again and goes on, and nobody is
// fenced.
func TestSlotLost(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	f := b.start(t, 0, auto...)
	l := b.startLoad(t, rng, "l", 8)
	for range 3 {
		l.passMore(t, 100)
		pid := ask[int](t, b, `select pid `+slotLock)
		require.True(t, ask[bool](t, b, `select pg_terminate_backend($1)`, pid))
		b.awaitSQL(t, `select count(*) = 1 and min(pid) <> $1 `+slotLock, pid)
	}
	l.passMore(t, 100)
	require.Zero(t, f.where(t).Slot)
	rebuilds, err := f.metric(t.Context(), "dedup_session_rebuilds_total")
	require.NoError(t, err)
	require.Zero(t, rebuilds)
	l.end(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
	require.Zero(t, ask[int](t, b, `select count(*) `+slotLock), "the lock is given back")
}

// TestSlotTakenMeanwhile: while the connection is gone another gets the lock. The
// filter opens its sessions again under the next slot, and a second process works
// under the first.
func TestSlotTakenMeanwhile(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	f := b.start(t, 0, auto...)
	l := b.startLoad(t, rng, "m", 8)
	l.passMore(t, 200)
	let := b.takeNext(t, 0)
	require.True(t, ask[bool](t, b, `select pg_terminate_backend(pid) `+slotLock))
	f.awaitSlot(t, 1)
	b.awaitSQL(t, `select count(*) > 0 from pg_stat_activity where datname = current_database() and application_name ~ '^dedup slot 1 rules [0-9a-f]+$'`)
	l.passMore(t, 200)
	let()
	g := b.start(t, 1, auto...)
	require.Zero(t, g.where(t).Slot)
	l.passMore(t, 200)
	f.awaitReady(t)
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}

// takeNext waits for a slot's lock in the queue, so that nobody gets it before,
// and returns when it waits. What it returns gives the lock back.
func (b *bundle) takeNext(t *testing.T, slot int) (let func()) {
	t.Helper()
	class := ask[int64](t, b, `select classid::bigint::bit(32)::int::bigint `+slotLock+` and objid = $1::bigint`, slot)
	c, err := pgx.Connect(t.Context(), b.db.AdminURL)
	require.NoError(t, err)
	got := make(chan error, 1)
	go func() {
		_, err := c.Exec(t.Context(), `select pg_advisory_lock($1::int, $2::int)`, class, slot)
		got <- err
	}()
	b.awaitSQL(t, `select count(*) = 1 from pg_locks where locktype = 'advisory' and not granted
		and database = (select oid from pg_database where datname = current_database())`)
	return func() {
		require.NoError(t, <-got)
		require.NoError(t, c.Close(context.WithoutCancel(t.Context())))
	}
}

// TestSlotOfAFrozenProcess: a process stands still with its work in hand, and the
// server ends the connection of its lock, as it does when a machine does not
// answer. Another takes its slot, its names and its partitions. When the first
// goes on there are two of one slot: it is fenced and takes another, and does not
// end.
func TestSlotOfAFrozenProcess(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	f := b.start(t, 0, append(auto, "DEDUP_PROCESSOR_BATCH_RECORDS=50")...)
	l := b.startLoad(t, rng, "f", 8)
	l.passMore(t, 200)
	f.freeze(t)
	require.True(t, ask[bool](t, b, `select pg_terminate_backend(pid) `+slotLock))
	g := b.start(t, 1, auto...)
	require.Zero(t, g.where(t).Slot, "the slot of the one that stands still")
	l.passMore(t, 200)
	f.thaw(t)
	f.awaitSlot(t, 1)
	f.awaitReady(t)
	l.passMore(t, 200)
	require.Zero(t, g.where(t).Slot)
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}

// TestSlotBesideANumber: a process that was started with a number does not go by
// the locks. Whoever has its slot by a lock leaves it to the other.
func TestSlotBesideANumber(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	f := b.start(t, 0, auto...)
	l := b.startLoad(t, rng, "n", 8)
	l.passMore(t, 200)
	g := b.start(t, 0)
	f.awaitSlot(t, 1)
	f.awaitReady(t)
	l.passMore(t, 200)
	l.end(t)
	b.produce(t, b.markers("last")...)
	b.check(t)
	f.term(t)
	g.term(t)
	b.checkStopped(t)
}

// TestMoreSessionsThanPartitions: the sum over processes is told, by the one that
// makes it too many.
func TestMoreSessionsThanPartitions(t *testing.T) {
	t.Parallel()
	const says = "more sessions than raw partitions"
	b := newBundle(t, setup{Partitions: 3})
	f := b.start(t, 0, auto...)
	g := b.start(t, 1, auto...)
	g.awaitLog(t, says)
	g.awaitLog(t, "sessions=4 raw_partitions=3 idle=1")
	f.term(t)
	g.term(t)
	require.NotContains(t, f.text(t), says, "two sessions for three partitions")
}

// TestOrdinal: the number that ends the host name is the slot, and a host without
// one ends the start. The host's name is the machine's, so the test takes what it
// finds: the other half is that of internal/app/config.
func TestOrdinal(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	b := newBundle(t, setup{})
	ordinal := regexp.MustCompile(`[0-9]+$`).FindString(strings.Split(host, ".")[0])
	slot, err := strconv.Atoi(ordinal)
	if err != nil || slot > 9999 {
		b.requireFailure(t, []string{"DEDUP_PROCESSOR_SLOT=$ordinal"}, "processor.slot is $ordinal", host, "as dedup-7 does")
		return
	}
	f := b.start(t, 0, "DEDUP_PROCESSOR_SLOT=$ordinal")
	require.Equal(t, slot, f.where(t).Slot)
	f.term(t)
}

// TestRightsOfTheNextSlot: after the slot has moved, the rights that are looked
// after are those of the transactional ids in use now.
func TestRightsOfTheNextSlot(t *testing.T) {
	t.Parallel()
	b := restrictedBundle(t, setup{Partitions: 1})
	b.allow(t, devservices.UserFilter, b.namedRights()...)
	f := b.start(t, 0, auto...)
	let := b.takeNext(t, 0)
	require.True(t, ask[bool](t, b, `select pg_terminate_backend(pid) `+slotLock))
	f.awaitSlot(t, 1)
	f.awaitReady(t)
	let()
	all := acl.Member(b.group)[1]
	of := func(slot int) acl.Right {
		r := all
		r.Name = acl.Prefix(fmt.Sprintf("%s-%d-", b.group, slot))
		return r
	}
	// Nothing is asked of an idle filter: only the look finds it.
	b.allow(t, devservices.UserFilter, of(0))
	b.revoke(t, all)
	f.awaitReason(t, "lacks "+all.String())
	b.allow(t, devservices.UserFilter, of(1))
	b.revoke(t, of(0))
	f.awaitReady(t)
	b.produce(t, orders("acme:edifact", 0, 5)...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
