package integration

import (
	"fmt"
	"slices"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// reason is given with every act.
const reason = "INC-71: a test"

// act runs a command that acts, and requires how it ends and what it says.
func (b *bundle) act(t *testing.T, code int, says string, env []string, args ...string) (stdout string) {
	t.Helper()
	r := b.try(t, append([]string{"DEDUP_ACTOR=maria"}, env...), append(args, "--reason", reason)...)
	require.Equal(t, code, r.code, "%s%s", r.stdout, r.stderr)
	require.Contains(t, r.stdout+r.stderr, says)
	return r.stdout
}

// acts are the rows of dedup_action.
func (b *bundle) acts(t *testing.T) string {
	t.Helper()
	return ask[string](t, b, `select coalesce(string_agg(actor || ' ' || kind || ' ' || place || ' ' || reason, '; ' order by id), '') from dedup_action`)
}

func in0(m message) message { return in(0, m)[0] }

// undecided leaves partition 0 with a message that is decided and not committed:
// beside it in its batch is one whose output topic is missing. A copy of it, in
// partition 1, is SEEN, where copied.
func (b *bundle) undecided(t *testing.T, copied bool) (f *filter, env []string) {
	t.Helper()
	env = b.byTenant(t, "acme")
	b.migrate(t)
	b.command(t, env, "topics", "ensure", b.raw[0], "--scope", "acme")
	b.produce(t, in0(order("acme:edifact", "1", 5)), in0(cutOrder("gamma:edifact", "2")))
	f = b.launch(t, 0, env...)
	f.awaitHeld(t, b.raw[0]+"/0", "topics")
	if copied {
		b.produce(t, in(1, order("acme:edifact", "1", 5))...)
		b.awaitEnd(t, b.duplicates+".acme", 1)
	}
	b.awaitSQL(t, `select d_offset = 2 and w_offset = 0 and held = 'topics' and held_claim = claim from dedup_position where partition = 0`)
	return f, env
}

// of is the status of the output of a raw record, "" for none.
func (b *bundle) of(t *testing.T, partition int32, offset int64) string {
	t.Helper()
	for _, out := range b.observeOnly(t).Outputs {
		if out.Origin.Partition == partition && out.Origin.Offset == offset && out.Origin.Topic == b.raw[0] {
			return out.Status()
		}
	}
	return ""
}

func (b *bundle) awaitOutputAt(t *testing.T, partition int32, offset int64, status string) {
	t.Helper()
	k := b.track(t)
	defer k.client.Close()
	k.await(t, func() (int, bool) {
		return 1, k.seen[place{Topic: b.raw[0], Partition: partition, Offset: offset}] > 0
	})
	require.Equal(t, status, b.of(t, partition, offset))
}

// TestSkipAHeldPartition: under a running filter that holds it. What was decided
// is an orphan: it is listed with its copy, and the next copy is NEW, once. The
// other partition is not to be had.
func TestSkipAHeldPartition(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2, Unprepared: true})
	f, env := b.undecided(t, true)
	raw := b.raw[0]

	said := b.act(t, 0, "dry run: nothing was changed", env, "skip", raw+"/0", "--to", "2", "--dry-run")
	require.Contains(t, said, "goes on at 2 instead of 0: 2 offsets get no output")
	require.Contains(t, said, fmt.Sprintf("of %s/0/0: the next copy is NEW; in duplicates: %s/1/0", raw, raw))
	require.Empty(t, b.acts(t))
	require.Zero(t, b.sumOf(t, `select count(*) from dedup_gap`))
	b.act(t, 1, "--to 9 lies behind the log end 2", env, "skip", raw+"/0", "--to", "9")
	end := b.openTransaction(t, raw, 1) // so that it lies before the log's end
	b.act(t, 1, "members and does not hold the partition", env, "skip", raw+"/1", "--to", "2")
	end(kgo.TryAbort)
	require.Equal(t, 2, b.try(t, env, "skip", raw+"/0", "--to", "2").code, "without a reason")

	require.Equal(t, said[:len(said)-len("dry run: nothing was changed\n")], b.act(t, 0, "goes on at 2", env, "skip", raw+"/0", "--to", "2"))
	b.act(t, 0, "already done", env, "skip", raw+"/0", "--to", "2")
	require.Equal(t, "maria skip "+raw+"/0 "+reason, b.acts(t))
	require.Equal(t, "skip 0-2", ask[string](t, b, `select string_agg(kind || ' ' || from_offset || '-' || to_offset, ', ') from dedup_gap`))
	f.awaitReady(t)
	b.produce(t, in0(order("acme:edifact", "1", 5)), in0(order("acme:edifact", "1", 5)))
	b.awaitOutputAt(t, 0, 3, "SEEN")
	require.Equal(t, "NEW", b.of(t, 0, 2), "the copy behind the gap")
	f.awaitMetric(t, "dedup_orphans_total", []string{`topic="` + raw + `"`}, func(v float64) bool { return v == 1 })
	require.Equal(t, []string{"", ""}, []string{b.of(t, 0, 0), b.of(t, 0, 1)}, "what was skipped")
	f.term(t)
}

// TestSkipWhileStopped: the group is empty and its offset is at the start, set by
// another tool. The row's position stands, after a kill too; copies behind what
// was skipped are judged as if that had never been.
func TestSkipWhileStopped(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 10)...)
	b.awaitOutputs(t)
	f.term(t)
	b.vacate(t)
	from := b.sumOf(t, `select w_offset from dedup_position where partition = 0`)
	b.setOffsets(t, func(int64) int64 { return 0 })
	b.produce(t, b.everywhere("b", 10)...)
	to := fmt.Sprint(from + 3)
	b.act(t, 0, "3 offsets get no output", nil, "skip", b.raw[0]+"/0", "--to", to)
	b.act(t, 0, "already done", nil, "skip", b.raw[0]+"/0", "--to", to)
	gone := b.forgetPlaces(func(w place) bool { return w.Partition == 0 && w.Offset >= from && w.Offset < from+3 })
	require.Len(t, gone, 3)

	f = b.start(t, 0)
	b.awaitHandled(t)
	f.kill(t)
	f = b.start(t, 0)
	b.produce(t, b.everywhere("c", 5)...)
	b.awaitHandled(t)
	f.term(t)
	b.nothingCameOf(t, gone)
	b.judgeOutputs(t)
}

// TestAdopt: a group was renamed. Refused while the old one has members.
func TestAdopt(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 10)...)
	b.awaitOutputs(t)
	renamed := []string{"DEDUP_KAFKA_GROUP=new-" + b.id}
	b.allow(t, devservices.UserFilter, acl.Member("new-"+b.id)...)
	b.act(t, 1, "members: stop every filter of that group", renamed, "topics", "adopt", b.raw[0])
	f.kill(t)
	b.vacate(t)
	b.act(t, 0, "dry run", renamed, "topics", "adopt", b.raw[0], "--dry-run")
	other := b.launch(t, 0, renamed...)
	other.awaitHeld(t, b.raw[0]+"/0", "group")
	other.term(t)

	b.act(t, 0, "filtered by group \"new-"+b.id+"\" from now on", renamed, "topics", "adopt", b.raw[0])
	b.act(t, 0, "already done", renamed, "topics", "adopt", b.raw[0])
	require.Equal(t, "maria adopt "+b.raw[0]+" "+reason, b.acts(t))
	other = b.start(t, 0, renamed...)
	b.produce(t, b.everywhere("a", 15)...)
	b.check(t)
	other.term(t)
	b.checkStopped(t)
	require.Zero(t, b.sumOf(t, `select count(*) from dedup_gap`))
}

// TestRetire: a raw topic is deleted while a message is decided and not
// committed. Its row stays in the way until the topic is retired; then the next
// copy, in the topic made again, is NEW.
func TestRetire(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2, Unprepared: true})
	f, env := b.undecided(t, true)
	raw := b.raw[0]
	old := ask[string](t, b, `select distinct topic_id::text from dedup_position`)
	f.kill(t)
	b.vacate(t)
	b.act(t, 1, "is that of "+raw+", which is there", env, "topics", "retire", raw+"@"+old)
	b.deleteTopic(t, raw)
	b.act(t, 1, "no position of topic id", env, "topics", "retire", raw+"@"+uuid.NewString())
	b.act(t, 1, "was "+raw+", not other", env, "topics", "retire", "other@"+old)
	said := b.act(t, 0, "2 offsets from 0 on were decided and have no output", env, "topics", "retire", raw+"@"+old)
	require.Contains(t, said, fmt.Sprintf("of %s/0/0: the next copy is NEW; in duplicates: %s/1/0", raw, raw))
	b.act(t, 0, "already done", env, "topics", "retire", raw+"@"+old)
	require.Equal(t, "maria retire "+raw+"@"+old+" "+reason, b.acts(t))
	require.Equal(t, "retired 0/0-2", ask[string](t, b, `select string_agg(kind || ' ' || partition || '/' || from_offset || '-' || to_offset, ', ') from dedup_gap`))

	b.command(t, env, "topics", "ensure", raw)
	admin := b.admin
	b.connect(t) // a producer holds on to the topic id it knows
	b.admin = admin
	b.mu.Lock()
	b.sent = nil
	b.mu.Unlock()
	f = b.start(t, 0, env...)
	b.produce(t, in0(order("acme:edifact", "1", 5)))
	b.awaitOutputAt(t, 0, 0, "NEW")
	f.awaitMetric(t, "dedup_orphans_total", nil, func(v float64) bool { return v == 1 })
	f.awaitMetric(t, "dedup_hot_disagreements_total", nil, func(v float64) bool { return v == 0 })
	f.term(t)
}

// TestRepairByWord: another tool has deleted the group's offsets, and retention
// the outputs. Whether a message that was decided is committed nobody can tell
// but the operator: it comes again, or it does not.
func TestRepairByWord(t *testing.T) {
	t.Parallel()
	for word, came := range map[string]string{"committed": "", "aborted": "NEW"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, setup{Partitions: 2, Unprepared: true})
			f, env := b.undecided(t, false)
			raw := b.raw[0]
			f.kill(t)
			b.vacate(t)
			b.command(t, env, "topics", "ensure", raw, "--scope", "gamma")
			b.takeOutputs(t, b.clean[0], 0)
			f = b.launch(t, 0, env...)
			f.awaitHeld(t, raw+"/0", "outputs_gone")
			b.awaitSQL(t, `select held = 'outputs_gone' and held_claim = claim from dedup_position where partition = 0`)

			b.act(t, 0, "whether records 0..1 have outputs cannot be told", env, "repair", "--dry-run")
			b.act(t, 1, "write --assume committed", env, "repair", raw+"/0")
			require.Empty(t, b.acts(t))
			b.act(t, 0, "", env, "repair", raw+"/0", "--assume", word)
			b.act(t, 0, "already done", env, "repair", raw+"/0", "--assume", word)
			require.Equal(t, "maria repair "+raw+"/0 "+reason, b.acts(t))
			f.awaitReady(t)
			b.produce(t, in0(order("acme:edifact", "1", 5)))
			b.awaitOutputAt(t, 0, 2, "SEEN")
			require.Equal(t, came, b.of(t, 0, 0))
			f.term(t)
			require.Zero(t, b.sumOf(t, `select count(*) from dedup_gap`))
		})
	}
}

// takeOutputs lets retention take all of an output partition, what the filter
// knows of it and two offsets more, as many as a committed output has at least.
func (b *bundle) takeOutputs(t *testing.T, topic string, partition int32) {
	t.Helper()
	for range 2 {
		require.NoError(t, b.client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: []byte("a stranger's")}).FirstErr())
	}
	ends, err := b.admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	end, ok := ends.Lookup(topic, partition)
	require.True(t, ok)
	b.deleteRecords(t, topic, partition, end.Offset)
}

// TestRepairWhatPostgresLost: PostgreSQL was put back, and of what it must learn
// retention has taken a part. The group's offset proves that all of it is
// committed: that may not be called aborted. What is left is learned; nothing
// comes a second time.
func TestRepairWhatPostgresLost(t *testing.T) {
	t.Parallel()
	b, pg := bundleOnOwnPostgres(t, setup{Partitions: 2})
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 20)...)
	b.awaitOutputs(t)
	copied := b.copyData(t, pg)
	b.forgotten(t)
	f.term(t)
	before := b.observeOnly(t).Outputs
	b.putBack(t, pg, copied)
	from := b.sumOf(t, `select (outputs->$1->>'0')::bigint from dedup_position where partition = 0`, b.clean[0])
	b.deleteRecords(t, b.clean[0], 0, from+10)
	f = b.launch(t, 0)
	f.awaitHeld(t, b.raw[0]+"/0", "outputs_gone")
	b.awaitSQL(t, `select held = 'outputs_gone' and held_claim = claim from dedup_position where partition = 0`)

	b.act(t, 1, "proves that everything", nil, "repair", b.raw[0], "--assume", "aborted")
	b.act(t, 1, "with --accept-gap it goes on without", nil, "repair", b.raw[0])
	b.act(t, 0, "learns what is left", nil, "repair", b.raw[0], "--accept-gap")
	f.awaitReady(t)
	b.produce(t, b.everywhere("d", 5)...)
	b.awaitHandledSince(t, "d")
	f.term(t)
	require.Zero(t, b.sumOf(t, `select count(*) from dedup_gap`), "what retention took is no gap")
	after := map[place]int{}
	for _, out := range b.observeOnly(t).Outputs {
		after[out.Origin]++
	}
	for _, out := range before {
		require.LessOrEqual(t, after[out.Origin], 1, "%s", out.Origin)
	}
}

// awaitHandledSince waits for the outputs of what was produced last, everywhere.
func (b *bundle) awaitHandledSince(t *testing.T, name string) {
	t.Helper()
	books := b.books()
	last := books[len(books)-len(b.everywhere(name, 5)):]
	k := b.track(t)
	defer k.client.Close()
	k.await(t, func() (missing int, ok bool) {
		missing = len(slices.DeleteFunc(slices.Clone(last), func(s sent) bool { return k.seen[s.Place] > 0 }))
		return missing, missing == 0
	})
}
