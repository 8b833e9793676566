package topics_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// wireTable is the table of README.md with example values; the ids were
// computed with another implementation of UUIDv5 (RFC 9562 §5.5). What stands
// here is what other people's tools rely on.
var wireTable = map[string][]string{
	"clean": {
		"dedup-key=edifact:4098765000014:14/4012345000023:14/77001",
		"dedup-scope=acme:as2",
		"dedup-id=82db9ca1-7a6a-57ad-a35b-7f50fb4c7f42",
		"dedup-status=NEW",
		"dedup-origin=raw-ingest.as2/3/8790",
		"dedup-first-seen-at=2026-11-27T09:30:02.114007Z",
		"dedup-expires-at=2027-01-26T09:30:02.114007Z",
		"dedup-payload-sha256=" + emptySHA256,
	},
	"duplicates": {
		"dedup-key=edifact:4098765000014:14/4012345000023:14/77001",
		"dedup-scope=acme:as2",
		"dedup-status=DRIFT",
		"dedup-origin=raw-ingest.as2/3/8790",
		"dedup-first-seen-at=2026-11-27T09:30:02.114007Z",
		"dedup-expires-at=2027-01-26T09:30:02.114007Z",
		"dedup-first-origin=raw-ingest.as2/3/7741",
		"dedup-first-id=c2bd5bb0-6263-56c1-b874-7176260dad6c",
		"dedup-first-payload-sha256=0100000000000000000000000000000000000000000000000000000000000000",
		"dedup-payload-sha256=" + emptySHA256,
		"dedup-retry-count=3",
		"dedup-reason=hash.edi/1",
	},
	"dead-letter": {
		"dedup-key=edifact:4098765000014:14/4012345000023:14/77001",
		"dedup-scope=acme:as2",
		"dedup-status=INVALID",
		"dedup-origin=raw-ingest.as2/3/8790",
		"dedup-payload-sha256=" + emptySHA256,
		"dedup-reason=output.rejected",
	},
	"reference": {
		"dedup-status=INVALID",
		"dedup-origin=raw-ingest.as2/3/8790",
		"dedup-payload-sha256=" + emptySHA256,
		"dedup-reason=record.too_large",
		"dedup-payload=reference",
		"dedup-payload-bytes=7",
	},
}

const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

var (
	topicID = ledger.TopicID(uuid.MustParse("0f5b0a3e-6c0e-5d0f-9b1a-2f6d7c8e9a10"))
	at      = time.Date(2026, 11, 27, 10, 30, 2, 114007000, time.FixedZone("CET", 3600))
)

func facts(v ledger.Verdict, reason string) *topics.Facts {
	f := &topics.Facts{
		Origin: ledger.Origin{Gate: ledger.GateKafka, Topic: topicID, Partition: 3, Epoch: 5, Offset: 8790},
		Scope:  "acme:as2", Key: "edifact:4098765000014:14/4012345000023:14/77001",
		Verdict: v, Reason: reason, PayloadSHA256: sha256.Sum256(nil), Repeat: 3,
	}
	f.Entry = ledger.Entry{
		Origin: f.Origin, PayloadSHA256: f.PayloadSHA256, FirstSeenAt: at, ExpiresAt: at.Add(60 * 24 * time.Hour),
	}
	if v != ledger.New {
		f.Entry.Origin.Offset, f.Entry.PayloadSHA256 = 7741, [32]byte{1}
	}
	return f
}

func newBuilder(t testing.TB, raw string, outCount int32) *topics.Builder {
	t.Helper()
	r := newRouter(t)
	clean, err := r.Clean(raw)
	require.NoError(t, err)
	l := topics.NewLayout(map[string]topics.TopicInfo{
		raw: {ID: topicID, Partitions: 12}, clean: {ID: ledger.TopicID{1}, Partitions: 12},
		"duplicates": {ID: ledger.TopicID{2}, Partitions: outCount}, "dead-letter": {ID: ledger.TopicID{3}, Partitions: outCount},
	})
	b, err := newBuilderOf(t, r, l, raw)
	require.NoError(t, err)
	return b
}

func newBuilderOf(t testing.TB, r *topics.Router, l *topics.Layout, raw string) (*topics.Builder, error) {
	t.Helper()
	route, err := r.Route(raw)
	require.NoError(t, err)
	return topics.NewBuilder(route, l, l.Name)
}

func rawRecord() *kgo.Record {
	return &kgo.Record{
		Topic: "raw-ingest.as2", Partition: 3, Offset: 8790, LeaderEpoch: 5,
		Key: []byte("acme:as2"), Value: []byte("UNB+..."), Timestamp: time.UnixMilli(1_700_000_000_000),
	}
}

func lines(headers []kgo.RecordHeader) []string {
	var out []string
	for _, h := range headers {
		out = append(out, h.Key+"="+string(h.Value))
	}
	return out
}

func TestHeadersAreTheTable(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "raw-ingest.as2", 12)
	require.Equal(t, wireTable["clean"], lines(b.Output(rawRecord(), facts(ledger.New, "")).Headers))
	require.Equal(t, wireTable["duplicates"], lines(b.Output(rawRecord(), facts(ledger.Drift, "hash.edi/1")).Headers))
	require.Equal(t, wireTable["dead-letter"], lines(b.Output(rawRecord(), facts(ledger.Invalid, topics.CodeOutputRejected)).Headers))
	f := facts(ledger.Invalid, topics.CodeRecordTooLarge)
	f.Key, f.Scope = "", ""
	require.Equal(t, wireTable["reference"], lines(b.Output(rawRecord(), f).Headers))

	seen := lines(b.Output(rawRecord(), facts(ledger.Seen, "")).Headers)
	require.Contains(t, seen, "dedup-status=SEEN")
	require.Len(t, seen, 11, "no reason")
}

func TestOutputKeepsTheRecord(t *testing.T) {
	t.Parallel()
	for _, outCount := range []int32{12, 5} {
		b := newBuilder(t, "raw-ingest.as2", outCount)
		for verdict, topic := range map[ledger.Verdict]string{
			ledger.New: "clean.as2", ledger.Seen: "duplicates", ledger.Drift: "duplicates", ledger.Invalid: "dead-letter",
		} {
			in := rawRecord()
			out := b.Output(in, facts(verdict, "key.not_found"))
			require.Equal(t, topic, out.Topic)
			require.Equal(t, in.Key, out.Key)
			require.Equal(t, in.Value, out.Value)
			require.Equal(t, in.Timestamp, out.Timestamp)
			want := int32(3)
			if topic != "clean.as2" {
				want = topics.Partition(in.Key, 3, 12, outCount)
			}
			require.Equal(t, want, out.Partition)

			in.Key, in.Value = nil, nil
			out = b.Output(in, facts(verdict, ""))
			require.Nil(t, out.Key, "nil stays nil")
			require.Nil(t, out.Value)
			in.Key, in.Value = []byte{}, []byte{}
			out = b.Output(in, facts(verdict, ""))
			require.NotNil(t, out.Key, "empty stays empty")
			require.NotNil(t, out.Value)
		}
	}
}

// Foreign headers come out as they went in, in order, whatever is between them,
// and of ours only those that the filter wrote.
// Fault card: F11.
func TestForeignHeadersUntouched(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 71))
	b := newBuilder(t, "raw-ingest.as2", 12)
	names := []string{
		"traceparent", "", "dedup", "dedup-", "Dedup-Id", "DEDUP-STATUS", "dedup-id", "dedup-forged", "xdedup-id", "x-dedup-pointers",
		"source-service", "ünï", "\xff", "dedup\x00-id", "message-id",
	}
	for range 500 {
		in := rawRecord()
		foreign := []kgo.RecordHeader{}
		for range rng.IntN(12) {
			h := kgo.RecordHeader{Key: names[rng.IntN(len(names))]}
			switch rng.IntN(3) {
			case 0:
				h.Value = []byte{}
			case 1:
				h.Value = []byte(fmt.Sprint(rng.Uint64(), "\x00\xff"))
			}
			in.Headers = append(in.Headers, h)
			if !strings.HasPrefix(strings.ToLower(h.Key), "dedup-") {
				foreign = append(foreign, h)
			}
		}
		before := fmt.Sprint(in.Headers)
		v := ledger.Verdict(1 + rng.IntN(4))
		out := b.Output(in, facts(v, "key.not_found"))
		require.Equal(t, foreign, out.Headers[:len(foreign):len(foreign)], "nil stays nil, repeats stay, order stays")
		for _, h := range out.Headers[len(foreign):] {
			require.True(t, topics.Ours(h.Key))
			require.NotContains(t, string(h.Value), "\x00")
			require.Equal(t, strings.ToLower(h.Key), h.Key)
		}
		require.Equal(t, before, fmt.Sprint(in.Headers), "the input is not written to")
	}
}

func TestValuesDoNotShareCapacity(t *testing.T) {
	t.Parallel()
	out := newBuilder(t, "raw-ingest.as2", 12).Output(rawRecord(), facts(ledger.Seen, ""))
	before := lines(out.Headers)
	for i := range out.Headers {
		_ = append(out.Headers[i].Value, "overwritten"...)
	}
	require.Equal(t, before, lines(out.Headers))
}

// Ours stay below 1 KiB with the longest of everything.
func TestOurHeadersAreBounded(t *testing.T) {
	t.Parallel()
	raw := "raw-ingest." + strings.Repeat("r", 238)
	part := strings.Repeat("s", 40)
	b := newBuilder(t, raw, 12)
	for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Drift, ledger.Invalid} {
		for _, reason := range []string{strings.Repeat("c", 64), topics.CodeRecordTooLarge} {
			f := facts(v, reason)
			f.Key, f.Scope, f.Repeat, f.Omit = strings.Repeat("k", 200), part+":"+part, math.MaxInt64, true
			f.Origin.Partition, f.Origin.Offset = math.MaxInt32, math.MaxInt64
			f.Entry.Origin.Partition, f.Entry.Origin.Offset = math.MaxInt32, math.MaxInt64
			in := rawRecord()
			in.Topic = raw
			out := b.Output(in, f)
			size := 0
			for _, h := range out.Headers {
				size += len(h.Key) + len(h.Value)
			}
			require.Less(t, size, 1024, "%s %s", v, reason)
			got, err := topics.ReadOutput(out)
			require.NoError(t, err)
			require.True(t, got.Origin.In(raw, topicID), "name or id: %s", got.Origin)
		}
	}
	// Names that fit are never shortened.
	in := rawRecord()
	out := b.Output(in, facts(ledger.Drift, "hash.edi"))
	origin, _ := topics.Last(out.Headers, topics.HeaderFirstOrigin)
	require.Equal(t, raw+"/3/7741", string(origin))
}

func TestReference(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "raw-ingest.as2", 5)
	in := rawRecord()
	in.Headers = []kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-1")}}
	full := b.DeadLetter(in, facts(ledger.Invalid, topics.CodeOutputRejected))
	require.NotNil(t, full.Value)

	now := time.UnixMilli(1_800_000_000_000)
	ref := b.Reference(in, facts(ledger.Invalid, topics.CodeOutputRejected), now)
	require.Nil(t, ref.Value)
	require.Equal(t, now, ref.Timestamp, "the refused one may be what was refused")
	require.Equal(t, full.Partition, ref.Partition)
	require.Equal(t, in.Headers[0], ref.Headers[0])
	require.Equal(t, "UNB+...", string(in.Value), "the input is not written to")

	big := b.DeadLetter(in, facts(ledger.Invalid, topics.CodeRecordTooLarge))
	require.Nil(t, big.Value, "a reference at once")
	require.Equal(t, in.Timestamp, big.Timestamp, "with its own time")

	// What makes a record too large may be its headers or its key: the last
	// resort must fit nevertheless, or the record would come round for ever.
	in.Key = bytes.Repeat([]byte("k"), 2<<20)
	in.Headers = append(in.Headers, kgo.RecordHeader{Key: "h", Value: make([]byte, 2<<20)})
	full = b.DeadLetter(in, facts(ledger.Invalid, topics.CodeOutputRejected))
	ref = b.Reference(in, facts(ledger.Invalid, topics.CodeOutputRejected), now)
	require.Nil(t, ref.Key)
	require.Len(t, ref.Headers, 8, "ours alone")
	require.Equal(t, full.Partition, ref.Partition)
}

func TestFirstOriginOfUnknownTopicAndAPI(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "raw-ingest.as2", 12)
	f := facts(ledger.Seen, "")
	f.Entry.Origin.Topic = ledger.TopicID{9}
	origin, _ := topics.Last(b.Output(rawRecord(), f).Headers, topics.HeaderFirstOrigin)
	require.Equal(t, ledger.TopicID{9}.String()+"/3/7741", string(origin))

	f.Entry.Origin = ledger.Origin{Gate: ledger.GateAPI, Client: "as4-gateway", Attempt: "sqs:1"}
	out := b.Output(rawRecord(), f)
	_, hasOrigin := topics.Last(out.Headers, topics.HeaderFirstOrigin)
	_, hasID := topics.Last(out.Headers, topics.HeaderFirstID)
	require.False(t, hasOrigin || hasID)
}

func TestNewBuilderWantsCounts(t *testing.T) {
	t.Parallel()
	r := newRouter(t)
	l := topics.NewLayout(map[string]topics.TopicInfo{"raw-ingest.as2": {Partitions: 3}, "clean.as2": {Partitions: 3}})
	_, err := newBuilderOf(t, r, l, "raw-ingest.as2")
	require.ErrorContains(t, err, "duplicates")
	_, err = newBuilderOf(t, r, topics.NewLayout(map[string]topics.TopicInfo{
		"clean.as2": {Partitions: 3}, "duplicates": {Partitions: 3}, "dead-letter": {Partitions: 3},
	}), "raw-ingest.as2")
	require.ErrorContains(t, err, "its partitions are not known")
}

func BenchmarkOutput(b *testing.B) {
	build := newBuilder(b, "raw-ingest.as2", 12)
	in := rawRecord()
	in.Headers = []kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-1")}, {Key: "source-service", Value: []byte("as2-gw-1")}}
	for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Invalid} {
		b.Run(v.String(), func(b *testing.B) {
			f := facts(v, "")
			b.ReportAllocs()
			for b.Loop() {
				build.Output(in, f)
			}
		})
	}
}

func TestDuplicateWithoutPayload(t *testing.T) {
	t.Parallel()
	in, f := rawRecord(), facts(ledger.Seen, "")
	f.Omit = true
	out := newBuilder(t, "raw-ingest.as2", 12).Output(in, f)
	require.Nil(t, out.Value)
	require.NotNil(t, in.Value)
	value, _ := topics.Last(out.Headers, topics.HeaderPayload)
	require.Equal(t, topics.PayloadOmitted, string(value))
	require.Equal(t, in.Timestamp, out.Timestamp)
	read, err := topics.ReadOutput(out)
	require.NoError(t, err)
	require.True(t, read.Reference)
	require.Equal(t, f.PayloadSHA256, read.PayloadSHA256)
}
