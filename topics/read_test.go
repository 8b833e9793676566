package topics_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

func TestReadOutputIsTheInverse(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "raw-ingest.as2", 12)
	in := rawRecord()
	in.Headers = []kgo.RecordHeader{{Key: "dedup-id", Value: []byte("forged")}, {Key: "source-service", Value: []byte("as2-gw-1")}}
	for _, v := range []ledger.Verdict{ledger.New, ledger.Seen, ledger.Drift, ledger.Invalid} {
		f := facts(v, "hash.edi")
		got, err := topics.ReadOutput(b.Output(in, f))
		require.NoError(t, err)
		want := topics.Output{
			Verdict: v, Origin: topics.Place{Topic: "raw-ingest.as2", Partition: 3, Offset: 8790},
			Scope: topics.Scope{Tenant: "acme", Flow: "as2"}, Key: f.Key, Reason: "hash.edi", PayloadSHA256: f.PayloadSHA256,
			FirstSeenAt: at.UTC(), ExpiresAt: at.UTC().Add(60 * 24 * time.Hour), SourceService: "as2-gw-1", Bytes: 7,
		}
		switch v {
		case ledger.New:
			want.ID = f.Origin.ID()
		case ledger.Invalid:
			want.FirstSeenAt, want.ExpiresAt = time.Time{}, time.Time{}
		default:
		}
		require.Equal(t, want, got, "%s: with PostgreSQL's microseconds", v)
	}
	f := facts(ledger.Invalid, topics.CodeScopeMalformed)
	f.Key, f.Scope = "", ""
	got, err := topics.ReadOutput(b.Reference(in, f, time.UnixMilli(1)))
	require.NoError(t, err)
	require.Equal(t, topics.Scope{}, got.Scope)
	require.True(t, got.Reference)
	require.EqualValues(t, 7, got.Bytes, "of the raw record")

	f = facts(ledger.Seen, "")
	f.Omit = true
	late := b.Output(in, f)
	got, err = topics.ReadOutput(late)
	require.NoError(t, err)
	require.EqualValues(t, 7, got.Bytes)
	late.Headers = late.Headers[:len(late.Headers)-1]
	got, err = topics.ReadOutput(late)
	require.NoError(t, err, "of a program that did not tell yet")
	require.Zero(t, got.Bytes)
	for _, forged := range []string{"-1", "07", "2147483648", "7 B"} {
		late.Headers = append(late.Headers, kgo.RecordHeader{Key: topics.HeaderBytes, Value: []byte(forged)})
		_, err = topics.ReadOutput(late)
		require.ErrorIs(t, err, topics.ErrMalformed, forged)
	}
}

func TestEpoch(t *testing.T) {
	t.Parallel()
	out, err := topics.ReadOutput(newBuilder(t, "raw-ingest.as2", 12).Output(rawRecord(), facts(ledger.New, "")))
	require.NoError(t, err)
	e, ok := out.Epoch(topicID, 0, 9)
	require.True(t, ok)
	require.EqualValues(t, 5, e)
	_, ok = out.Epoch(topicID, 0, 4)
	require.False(t, ok)
	_, ok = out.Epoch(ledger.TopicID{1}, 0, 9)
	require.False(t, ok, "another incarnation of the topic")
	out.ID = uuid.Nil
	_, ok = out.Epoch(topicID, 0, 9)
	require.False(t, ok)
}

func TestReadOutputRefuses(t *testing.T) {
	t.Parallel()
	_, err := topics.ReadOutput(&kgo.Record{Headers: []kgo.RecordHeader{{Key: "dedup-key", Value: []byte("x")}}})
	require.ErrorIs(t, err, topics.ErrForeignRecord)

	b := newBuilder(t, "raw-ingest.as2", 12)
	for _, c := range []struct {
		verdict           ledger.Verdict
		header, forged    string
		refusedWhenAbsent bool
	}{
		{ledger.New, topics.HeaderKey, "a b", true},
		{ledger.New, topics.HeaderKey, strings.Repeat("k", 201), true},
		{ledger.New, topics.HeaderKey, "k\x00", true},
		{ledger.New, topics.HeaderScope, "a:b:c", true},
		{ledger.New, topics.HeaderID, "{2cf90b4d-91c9-51f7-a0b9-48b9573a9fc2}", true},
		{ledger.New, topics.HeaderStatus, "new", true},
		{ledger.New, topics.HeaderOrigin, "raw/1", true},
		{ledger.New, topics.HeaderFirstSeenAt, "yesterday", true},
		{ledger.New, topics.HeaderFirstSeenAt, "2030-01-01T00:00:00Z", true}, // behind its end
		{ledger.New, topics.HeaderExpiresAt, "0001-01-01T00:00:00Z", true},
		{ledger.New, topics.HeaderSHA256, strings.Repeat("g", 64), true},
		{ledger.Seen, topics.HeaderSHA256, "00", true},
		{ledger.Seen, topics.HeaderReason, "it's broken", false},
		{ledger.Seen, topics.HeaderID, "x", false},
		{ledger.Invalid, topics.HeaderReason, strings.Repeat("r", 65), true},
		{ledger.Invalid, topics.HeaderScope, "x", false},
		{ledger.Invalid, topics.HeaderKey, "ü", false},
	} {
		good := b.Output(rawRecord(), facts(c.verdict, "key.not_found"))
		forged, absent := *good, *good
		forged.Headers = append(append([]kgo.RecordHeader(nil), good.Headers...), kgo.RecordHeader{Key: c.header, Value: []byte(c.forged)})
		_, err := topics.ReadOutput(&forged)
		require.ErrorIs(t, err, topics.ErrMalformed, "%s %s", c.verdict, c.header)
		require.NotContains(t, err.Error(), c.forged)

		absent.Headers = nil
		for _, h := range good.Headers {
			if h.Key != c.header {
				absent.Headers = append(absent.Headers, h)
			}
		}
		_, err = topics.ReadOutput(&absent)
		require.Equal(t, c.refusedWhenAbsent, err != nil, "%s without %s", c.verdict, c.header)
	}
}

func TestReadOutputMarksCopies(t *testing.T) {
	t.Parallel()
	rec := newBuilder(t, "raw-ingest.as2", 12).Output(rawRecord(), facts(ledger.New, ""))
	rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: topics.HeaderReplayID, Value: []byte("rep_01JE")})
	got, err := topics.ReadOutput(rec)
	require.NoError(t, err)
	require.Equal(t, "rep_01JE", got.ReplayID)
	rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: topics.HeaderStatus, Value: []byte(topics.StatusReleased)})
	got, err = topics.ReadOutput(rec)
	require.NoError(t, err)
	require.True(t, got.Released)
	require.Equal(t, ledger.New, got.Verdict)
}

// FuzzReadOutput forges two headers of a good output, and its value.
func FuzzReadOutput(f *testing.F) {
	f.Add(uint8(0), "dedup-key", []byte("x"), "dedup-origin", []byte("a/1/1"), []byte(nil))
	f.Add(uint8(1), "dedup-first-seen-at", []byte("9999-12-31T23:59:59.999999999+23:59"), "dedup-expires-at", []byte("0000-01-01T00:00:00Z"), []byte("v"))
	f.Add(uint8(2), "dedup-payload-sha256", []byte(emptySHA256), "Dedup-Status", []byte("RELEASED"), []byte("v"))
	f.Add(uint8(3), "source-service", []byte("\x00\xff"), "dedup-id", []byte("urn:uuid:2cf90b4d-91c9-51f7-a0b9-48b9573a9fc2"), []byte("v"))
	b := newBuilder(f, "raw-ingest.as2", 12)
	f.Fuzz(func(t *testing.T, verdict uint8, name1 string, value1 []byte, name2 string, value2, value []byte) {
		rec := b.Output(rawRecord(), facts(ledger.Verdict(1+verdict%4), "key.not_found"))
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name1, Value: value1}, kgo.RecordHeader{Key: name2, Value: value2})
		rec.Value = value
		o, err := topics.ReadOutput(rec)
		if err != nil {
			require.Equal(t, topics.Output{}, o)
			return
		}
		require.NotZero(t, o.Verdict)
		require.LessOrEqual(t, len(o.Key), 200)
		require.LessOrEqual(t, len(o.Reason), 64)
		require.LessOrEqual(t, utf8.RuneCountInString(o.ReplayID), 200)
		require.True(t, utf8.ValidString(o.Key+o.Reason+o.SourceService+o.ReplayID+o.Origin.Topic))
		require.NotContains(t, o.Key+o.Reason+o.SourceService+o.ReplayID, "\x00")
		require.GreaterOrEqual(t, o.Origin.Partition, int32(0))
		require.GreaterOrEqual(t, o.Origin.Offset, int64(0))
		if o.Verdict != ledger.Invalid {
			require.NotEmpty(t, o.Key)
			require.True(t, o.ExpiresAt.After(o.FirstSeenAt))
			_, err := topics.ParseScope(o.Scope.String())
			require.NoError(t, err)
		}
		o.Epoch(topicID, 0, 3)
	})
}

// FuzzOutput builds outputs of any record and reads them back.
func FuzzOutput(f *testing.F) {
	f.Add(uint8(0), []byte("acme:as2"), []byte("v"), "h", []byte("x"), "hdr:1", "acme:as2")
	f.Add(uint8(3), []byte(nil), []byte(nil), "Dedup-Status", []byte("NEW"), "", "")
	b := newBuilder(f, "raw-ingest.as2", 7)
	f.Fuzz(func(t *testing.T, verdict uint8, key, value []byte, name string, header []byte, k, scope string) {
		in := rawRecord()
		in.Key, in.Value, in.Headers = key, value, []kgo.RecordHeader{{Key: name, Value: header}}
		fact := facts(ledger.Verdict(1+verdict%4), "key.not_found")
		if _, err := topics.ParseScope(scope); err == nil {
			fact.Scope = scope
		}
		invisible := func(r rune) bool { return r <= ' ' || r > '~' }
		if k != "" && len(k) <= 200 && !strings.ContainsFunc(k, invisible) {
			fact.Key = k
		}
		out := b.Output(in, fact)
		require.Equal(t, in.Value, out.Value)
		require.Equal(t, in.Key, out.Key)
		got, err := topics.ReadOutput(out)
		require.NoError(t, err)
		require.Equal(t, fact.Verdict, got.Verdict)
		require.Equal(t, fact.Scope, got.Scope.String())
		require.Equal(t, fact.Key, got.Key)
	})
}
