package doctor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"dedupledger/topics"
	"dedupledger/topics/acl"
)

// lines are findings as level, area and text, and the repairs apart.
func lines(fs Findings) (texts, repairs []string) {
	for _, f := range fs {
		texts = append(texts, string(f.Level)+" "+f.Area+" "+f.Text)
		repairs = append(repairs, f.Repair)
	}
	return texts, repairs
}

// requireOne holds findings to a single one.
func requireOne(t *testing.T, fs Findings, text, repair string) {
	t.Helper()
	require.Len(t, fs, 1, "%v", fs)
	require.Equal(t, text, string(fs[0].Level)+" "+fs[0].Area+" "+fs[0].Text)
	require.Equal(t, repair, fs[0].Repair)
}

func TestReport(t *testing.T) {
	t.Parallel()
	var fs Findings
	fs.add(OK, "kafka", "", "3 brokers")
	fs.add(Fail, "topics", "do this", "%s is wrong", "clean.as2")
	fs.add(Warn, "redis", "", "evicts")
	var b testWriter
	require.NoError(t, fs.Print(&b))
	require.Equal(t, `ok    kafka      3 brokers
FAIL  topics     clean.as2 is wrong
                 repair: do this
warn  redis      evicts
1 failure, 1 warning
`, string(b))
}

type testWriter []byte

func (w *testWriter) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }

func TestJudgeCluster(t *testing.T) {
	t.Parallel()
	same := func(err error) error { return err }
	healthy := Cluster{Brokers: 3, Versions: []string{"4.1"}, Trial: Trial{Topic: "clean.as2"}}
	requireOne(t, healthy.Judge(same), "ok kafka 3 brokers, 4.1; transactions work (tried: begin, produce, abort on clean.as2)", "")
	untried := Cluster{Brokers: 1, Versions: []string{"4.1"}}
	requireOne(t, untried.Judge(same), "ok kafka 1 broker, 4.1; no transaction was tried: there is no clean topic yet", "")

	refused := healthy
	refused.Trial.Err = errors.New("no")
	requireOne(t, refused.Judge(same), "FAIL kafka transactions do not work (tried: begin, produce, abort on clean.as2): no", "the reason it names; the brokers' logs")
	refused.Trial.Err = fmt.Errorf("beginning: %w", kerr.TransactionalIDAuthorizationFailed)
	requireOne(t, refused.Judge(same), "FAIL kafka transactions do not work (tried: begin, produce, abort on clean.as2): "+kerr.TransactionalIDAuthorizationFailed.Error(), "dedup doctor --acls")
	refused.Trial.Err = kerr.ProducerFenced
	requireOne(t, refused.Judge(same), "warn kafka another doctor tried a transaction at the same moment", "run it again")
	sick := Cluster{Brokers: 3, Versions: []string{"3.9", "4.1"}, Silent: []string{"broker 2: gone"}}
	texts, _ := lines(sick.Judge(same))
	require.Equal(t, []string{
		"FAIL kafka broker 2: gone does not answer",
		"warn kafka brokers of different versions: 3.9, 4.1",
		"FAIL kafka version 3.9: Kafka 4.0 or later is needed",
	}, texts)
}

func TestJudgeTopics(t *testing.T) {
	t.Parallel()
	isRaw := func(name string) bool { return name == "raw-ingest.as2" }
	who := acl.Principal{Name: "User:dedup", Bootstrap: "b:1"}
	r := topics.Report{Pattern: "^raw", Present: []topics.NewTopic{{Name: "raw-ingest.as2", Partitions: 12}, {Name: "clean.as2", Partitions: 12}}}
	requireOne(t, JudgeTopics(&r, isRaw, who), "ok topics raw-ingest.as2 12, clean.as2 12", "")

	r.Mismatches = []topics.Mismatch{{Topic: "clean.as2", Text: "max.message.bytes 1 < 2", Repair: "kafka-configs.sh"}}
	requireOne(t, JudgeTopics(&r, isRaw, who), "FAIL topics clean.as2 max.message.bytes 1 < 2", "kafka-configs.sh")
	r.Mismatches = nil
	r.Created = []topics.NewTopic{{Name: "duplicates", Repair: "dedup topics ensure raw-ingest.as2"}}
	requireOne(t, JudgeTopics(&r, isRaw, who), "FAIL topics duplicates is missing: partitions that need it are held", "dedup topics ensure raw-ingest.as2")
	r.Created = nil
	r.Unread = acl.Doctor([]acl.Name{acl.Named("raw-ingest.as2")})
	texts, repairs := lines(JudgeTopics(&r, isRaw, who))
	require.Equal(t, "warn topics not all settings could be compared: User:dedup lacks DESCRIBE_CONFIGS on topic raw-ingest.as2", texts[1])
	require.Equal(t, "kafka-acls.sh --bootstrap-server b:1 --add --allow-principal User:dedup --operation DescribeConfigs --topic raw-ingest.as2", repairs[1])
	requireOne(t, JudgeTopics(&topics.Report{Pattern: "^raw"}, isRaw, who), "warn topics no topic matches topics.raw ^raw, or none may be seen", "dedup topics ensure RAW-TOPIC")
}

func TestJudgeRights(t *testing.T) {
	t.Parallel()
	requireOne(t, JudgeRights(nil), "ok acl all rights of the filter are there", "")
	requireOne(t, JudgeRights(acl.Member("g")[1:]), "FAIL acl WRITE on transactional id g-* missing", "dedup doctor --acls")
}

func TestJudgeWindows(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	r := topics.Report{Settings: map[string]map[string]string{
		"raw-ingest.as2": {"retention.ms": "259200000"}, "raw-ingest.as4": {"retention.ms": "-1"}, "clean.as2": {"retention.ms": "1"},
	}}
	raw := RawRetentions(&r, func(name string) bool { return name == "raw-ingest.as2" })
	require.Equal(t, map[string]time.Duration{"raw-ingest.as2": 3 * day}, raw)
	requireOne(t, JudgeWindows(Window{30 * day, "built in"}, raw, day), "ok rules shortest window 30d (built in), not below 3d of raw retention of raw-ingest.as2", "")
	requireOne(t, JudgeWindows(Window{day, "dedup.yaml:89"}, raw, day),
		"warn rules shortest window 1d (dedup.yaml:89) is below 3d of raw retention of raw-ingest.as2: a resend that comes after its window is NEW again while its original can still be read", "")
	requireOne(t, JudgeWindows(Window{day, "dedup.yaml:89"}, nil, day), "ok rules shortest window 1d (dedup.yaml:89), not below 1d of topics.create.raw_retention", "")
	require.Equal(t, "no limit", days(RawRetentions(&r, func(name string) bool { return name == "raw-ingest.as4" })["raw-ingest.as4"]))
}

func TestJudgeRedis(t *testing.T) {
	t.Parallel()
	m := Memory{Policy: "noeviction", Used: 3 << 20, Limit: 1 << 30}
	requireOne(t, m.Judge(), "ok redis takes facts; 3.0 MiB used, of 1.0 GiB, noeviction", "")
	m.Used = 1000 << 20
	requireOne(t, m.Judge(), "warn redis 1000.0 MiB of 1.0 GiB used: when it is full Redis takes no facts; verdicts stay right", "raise maxmemory, or set redis.ttl_cap")
	m = Memory{Policy: "allkeys-lru", Evicted: 7}
	requireOne(t, m.Judge(), "warn redis maxmemory-policy allkeys-lru: verdicts stay right, hot answers get fewer (7 keys evicted so far)", "")
}

func TestJudgeClocks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	in := Reading{Who: "PostgreSQL", Before: at, Theirs: at.Add(time.Second), After: at.Add(time.Minute)}
	requireOne(t, JudgeClocks(in, Reading{}), "ok clocks this machine and PostgreSQL within 2s", "")
	ahead := Reading{Who: "Redis", Before: at, Theirs: at.Add(5 * time.Second), After: at.Add(time.Second)}
	requireOne(t, JudgeClocks(in, ahead), "warn clocks the clock of Redis is 4s ahead of this machine's: windows go by PostgreSQL's clock, retention by the brokers' and the senders'", "NTP on both machines")
	behind := Reading{Who: "Kafka", Before: at, Theirs: at.Add(-3 * time.Second), After: at}
	texts, _ := lines(JudgeClocks(behind))
	require.Contains(t, texts[0], "the clock of Kafka is 3s behind this machine's")
	require.Empty(t, JudgeClocks(Reading{}))
}

func TestJudgeGroup(t *testing.T) {
	t.Parallel()
	g := Group{Name: "dedup-ledger", State: "Stable", Members: []Member{{Client: "dedup-ledger-dedup-ledger-0-0"}}}
	requireOne(t, g.Judge(), "ok group dedup-ledger is stable, 1 session", "")
	g.Members = append(g.Members, Member{Client: "console-consumer", Host: "/10.0.0.7"})
	requireOne(t, g.Judge(), `FAIL group dedup-ledger has a member that is no filter: client "console-consumer" at 10.0.0.7. It is given partitions, and nobody filters them`, "give that client a group of its own")
	requireOne(t, (&Group{Name: "g", State: "Empty"}).Judge(), "warn group g has no member: no filter is running, raw topics pile up", "dedup run")
	requireOne(t, (&Group{Name: "g", State: "PreparingRebalance"}).Judge(), "warn group g is rebalancing (PreparingRebalance), 0 members", "run it again in a moment")
}
