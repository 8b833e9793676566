package integration

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

// doctor runs `dedup doctor` and requires its exit code.
func (b *bundle) doctor(t *testing.T, code int, args ...string) (said string) {
	t.Helper()
	r := b.try(t, nil, append([]string{"doctor"}, args...)...)
	t.Logf("$ dedup doctor %s\n%s%s(exit %d)", strings.Join(args, " "), r.stdout, r.stderr, r.code)
	require.Equal(t, code, r.code)
	return r.stdout
}

// letCompare grants what the doctor needs beside the filter's rights.
func (b *bundle) letCompare(t *testing.T) {
	t.Helper()
	b.allow(t, devservices.UserFilter, acl.Doctor([]acl.Name{acl.Prefix("raw-ingest." + b.id + ".")})...)
}

// awaitStable waits until the group has so many members and every one its share: a
// session that joins later than another starts a rebalance of its own.
func (b *bundle) awaitStable(t *testing.T, members int) {
	t.Helper()
	until(t, "the group is stable", func(ctx context.Context) (bool, error) {
		d, err := b.admin.DescribeGroups(ctx, b.group)
		return d[b.group].State == "Stable" && len(d[b.group].Members) == members, err
	})
}

// requireFindings: each text is in a line that begins with its level and area,
// and no other line fails.
func requireFindings(t *testing.T, said string, want ...string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(said) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	for _, w := range want {
		found := false
		for _, line := range lines {
			found = found || strings.Contains(strings.Join(strings.Fields(line), " "), w)
		}
		require.True(t, found, "%q is not in\n%s", w, said)
	}
}

// TestDoctorOnAHealthySetUp: nothing fails beside a filter that runs, nor after
// it, and all is drained then.
func TestDoctorOnAHealthySetUp(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	f := b.start(t, 0)
	if b.restricted != "" { // the filter's own rights are enough but for this
		requireFindings(t, b.doctor(t, 0), "warn topics not all settings could be compared: User:filter lacks DESCRIBE_CONFIGS on topic "+b.raw[0])
	}
	b.letCompare(t)
	until(t, "the right is there", func(context.Context) (bool, error) { // brokers learn of it a moment later
		return !strings.Contains(b.try(t, nil, "doctor").stdout, "could be compared"), nil
	})
	b.produce(t, b.everywhere("a", 10)...)
	b.awaitOutputs(t)
	b.awaitStable(t, 2)
	said := b.doctor(t, 0)
	requireFindings(t, said, "ok kafka 1 broker", "transactions work (tried: begin, produce, abort on "+b.clean[0]+")",
		"ok topics "+b.raw[0]+" 2, "+b.clean[0]+" 2, "+b.duplicates+" 2", "ok acl all rights of the filter are there", "ok redis takes facts",
		"ok clocks this machine and Kafka, PostgreSQL, Redis within 2s", "ok group "+b.group+" is stable, 2 sessions",
		"ok positions 2 partitions exact", "ok months", "ok witness", "warn postgres no synchronous standby", "0 failures")
	f.term(t)
	require.Empty(t, b.doctor(t, 0, "--acls"))
	requireFindings(t, b.doctor(t, 0, "--drained"), "ok drained 2 partitions of 1 raw topic filtered to the end")
	b.produce(t, orders("acme:edifact", 0, 1)...)
	requireFindings(t, b.doctor(t, 1, "--drained"), "FAIL drained "+b.raw[0], "left")
	var d struct {
		Findings []struct{ Level, Area, Text, Repair string }
		Failures int
	}
	require.NoError(t, json.Unmarshal([]byte(b.doctor(t, 0, "--deep", "-o", "json")), &d))
	require.Zero(t, d.Failures)
	require.Equal(t, "deep", d.Findings[len(d.Findings)-2].Area)
	require.Equal(t, "order", d.Findings[len(d.Findings)-1].Area)
	b.checkHandledByDoctor(t)
}

// checkHandledByDoctor: what the doctor tried on the clean topic is no output.
func (b *bundle) checkHandledByDoctor(t *testing.T) {
	t.Helper()
	f := b.start(t, 0)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestDoctorTellsTopicAndRight: an output that takes only small records, and a
// transactional id that may not be used.
func TestDoctorTellsTopicAndRight(t *testing.T) {
	t.Parallel()
	b := restrictedBundle(t, setup{Partitions: 1})
	small := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new("1048588")}}
	altered, err := b.admin.AlterTopicConfigs(t.Context(), small, b.clean[0])
	require.NoError(t, err)
	require.NoError(t, altered[0].Err)
	b.allow(t, devservices.UserFilter, b.namedRights()...)
	b.letCompare(t)
	write := acl.Member(b.group)[1]
	b.revoke(t, write)
	until(t, "the right is gone", func(context.Context) (bool, error) { // brokers learn of it a moment later
		return b.try(t, nil, "doctor", "--acls").code == 1, nil
	})
	said := b.doctor(t, 1)
	requireFindings(t, said,
		"FAIL topics "+b.clean[0]+" max.message.bytes 1048588 < max_record_bytes 33554432 + 65536: large messages would be parked",
		"repair: kafka-configs.sh --bootstrap-server "+b.entry()+" --alter --entity-type topics --entity-name "+b.clean[0]+" --add-config max.message.bytes=33619968",
		"FAIL acl WRITE on transactional id "+b.group+"-* missing", "repair: dedup doctor --acls",
		"FAIL kafka transactions do not work", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "3 failures")
	grants := b.doctor(t, 1, "--acls")
	require.Equal(t, acl.Principal{Name: "User:filter", Bootstrap: b.entry()}.Commands(acl.Rights{write})[0]+"\n", grants)
	b.apply(t, grants)
	until(t, "the line grants it", func(context.Context) (bool, error) {
		r := b.try(t, nil, "doctor", "--acls")
		return r.code == 0 && r.stdout == "", nil
	})
	require.NotContains(t, b.doctor(t, 1), "FAIL  acl")
}

// TestDoctorTellsPositions: an offset that another tool set, and one that was
// deleted where outputs are gone, so that the filter holds the partition. It says
// the same before the filter meets it, and beside it.
func TestDoctorTellsPositions(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2})
	b.letCompare(t)
	f := b.start(t, 0)
	b.produce(t, b.everywhere("a", 5)...)
	b.awaitOutputs(t)
	f.term(t)
	b.vacate(t)
	b.doctor(t, 0) // leaves two offsets behind the last output of clean/0
	ends, err := b.admin.ListEndOffsets(t.Context(), b.clean[0])
	require.NoError(t, err)
	end, _ := ends.Lookup(b.clean[0], 0)
	b.deleteRecords(t, b.clean[0], 0, end.Offset)
	b.setOffsets(t, func(int64) int64 { return 0 })
	gone := kadm.TopicsSet{}
	gone.Add(b.raw[0], 0)
	deleted, err := b.admin.DeleteOffsets(t.Context(), b.group, gone)
	require.NoError(t, errors.Join(err, deleted.Error()))

	first, second := b.raw[0]+"/0", b.raw[0]+"/1"
	held := []string{
		"FAIL positions " + first + " held: offset deleted, and " + b.clean[0] + "/0 starts at",
		"repair: dedup repair " + first + " --assume committed|aborted --reason ...",
		"warn positions " + second + ": another tool set offset 0. Not obeyed",
		"to pass over: dedup skip " + second + " --to OFFSET --reason ...", "1 failure",
	}
	requireFindings(t, b.doctor(t, 1), append(held, "warn group "+b.group+" has no member")...)
	requireFindings(t, b.doctor(t, 1, "--drained"), held[0])
	f = b.launch(t, 0)
	f.awaitHeld(t, first, "outputs_gone")
	b.awaitStable(t, 2)
	requireFindings(t, b.doctor(t, 1), append(held[:3:3], "went on behind its last committed output", "ok group "+b.group+" is stable")...)
	f.term(t)
}

// TestDoctorTellsLedgerAndRedis: a policy that evicts, a month that is missing, a
// key with two live rows, a digest that does not fit and an alias without its key, all
// made by hand.
func TestDoctorTellsLedgerAndRedis(t *testing.T) {
	t.Parallel()
	r, err := shared.services.StartRedis(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	require.NoError(t, redisClient(t, r.Addr()).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	b := newBundle(t, setup{Partitions: 1, Redis: r.Addr()})
	b.letCompare(t)
	f := b.start(t, 0)
	b.produce(t, orders("acme:edifact", 0, 20)...)
	b.check(t)
	f.term(t)
	b.asOwner(t, `insert into dedup_ledger select (json_populate_record(l, json_build_object(
		'first_seen_at', l.first_seen_at + interval '1 millisecond', 'origin_offset', l.origin_offset + 100000))).*
		from dedup_ledger l where origin_offset = (select min(origin_offset) from dedup_ledger)`)
	b.asOwner(t, `update dedup_ledger set h = h + 1 where origin_offset = (select max(origin_offset) from dedup_ledger where origin_offset < 100000)`)
	b.asOwner(t, `insert into dedup_ledger select (json_populate_record(l, json_build_object('h', dedup_digest_1(l.scope, 'hdr:alone'), 'key', 'hdr:alone', 'alias_of', 'hdr:nobody'))).*
		from dedup_ledger l order by origin_offset limit 1`)
	month := ask[string](t, b, `select 'dedup_ledger' || to_char(date_trunc('month', now() at time zone 'UTC') + interval '1 month', '_YYYY_MM')`)
	b.asOwner(t, "drop table "+month)

	said := b.doctor(t, 1)
	requireFindings(t, said, "warn redis maxmemory-policy allkeys-lru: verdicts stay right, hot answers get fewer",
		"FAIL months "+month+" is missing", "repair: dedup migrate up", "1 failure")
	require.NotContains(t, said, "deep")
	said = b.doctor(t, 1, "--deep")
	requireFindings(t, said, "was accepted twice within its window, at", "FAIL deep the digest of acme:edifact",
		"hdr:alone, first seen", "is the alias of a key that has no row", "4 failures")
	b.migrate(t)
	requireFindings(t, b.doctor(t, 0), "ok months", "0 failures")
}
