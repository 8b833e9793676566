package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// ends are where the outputs of a test stand.
type ends map[string]int64

// committed is the output of a sent record, as the filter writes it.
func (e ends) committed(topic string, s *sent, verdict ledger.Verdict) *kgo.Record {
	hash := sha256.Sum256(s.value)
	now := time.Date(2026, 11, 29, 14, 2, 11, 0, time.UTC)
	headers := [][2]string{
		{topics.HeaderKey, s.key},
		{topics.HeaderScope, s.scope},
		{topics.HeaderStatus, verdict.String()},
		{topics.HeaderOrigin, s.place.String()},
		{topics.HeaderSHA256, hex.EncodeToString(hash[:])},
		{topics.HeaderFirstSeenAt, now.Format(topics.TimeLayout)},
		{topics.HeaderExpiresAt, now.Add(time.Hour).Format(topics.TimeLayout)},
	}
	if verdict == ledger.New {
		headers = append(headers, [2]string{topics.HeaderID, "0f5b0a3e-6c0e-5d0f-9b1a-2f6d7c8e9a10"})
	}
	r := &kgo.Record{Topic: topic, Offset: e[topic], Value: s.value}
	e[topic]++
	for _, h := range headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return r
}

// booked are an original, its resend and another original.
func booked() *books {
	b := newBooks()
	for i, m := range []message{
		{scope: "acme:edifact", key: "edifact:a/b/1", value: []byte("one"), want: ledger.New},
		{scope: "acme:edifact", key: "edifact:a/b/1", value: []byte("one"), want: ledger.Seen},
		{scope: "acme:edifact", key: "edifact:a/b/2", value: []byte("two"), want: ledger.New},
	} {
		b.book(m, topics.Place{Topic: rawTopic, Offset: int64(i)})
	}
	return b
}

func TestBooks(t *testing.T) {
	t.Parallel()
	const clean, duplicates = "clean.demo", "duplicates"
	altered := func(r *kgo.Record) *kgo.Record { r.Value = []byte("other"); return r }
	foreign := &kgo.Record{Topic: clean, Value: []byte("?")}
	for name, c := range map[string]struct {
		outputs func(e ends, s []sent) []*kgo.Record
		want    tally
	}{
		"all as it must be": {func(e ends, s []sent) []*kgo.Record {
			return []*kgo.Record{e.committed(clean, &s[0], ledger.New), e.committed(duplicates, &s[1], ledger.Seen), e.committed(clean, &s[2], ledger.New)}
		}, tally{verdicts: map[ledger.Verdict]int{ledger.New: 2, ledger.Seen: 1}}},
		"one lost": {func(e ends, s []sent) []*kgo.Record {
			return []*kgo.Record{e.committed(clean, &s[0], ledger.New), e.committed(clean, &s[2], ledger.New)}
		}, tally{verdicts: map[ledger.Verdict]int{ledger.New: 2}, lost: 1, faults: []string{
			"raw-ingest.demo/0/1 (edifact:a/b/1) has no output",
		}}},
		"thrown away by a seen flag": {func(e ends, s []sent) []*kgo.Record {
			return []*kgo.Record{e.committed(duplicates, &s[0], ledger.Seen), e.committed(duplicates, &s[1], ledger.Seen), e.committed(clean, &s[2], ledger.New)}
		}, tally{verdicts: map[ledger.Verdict]int{ledger.New: 1, ledger.Seen: 2}, faults: []string{
			"raw-ingest.demo/0/0 is SEEN at duplicates/0/0, should be NEW",
		}}},
		"emitted again": {func(e ends, s []sent) []*kgo.Record {
			return []*kgo.Record{e.committed(clean, &s[0], ledger.New), e.committed(clean, &s[0], ledger.New), e.committed(duplicates, &s[1], ledger.Seen), e.committed(clean, &s[2], ledger.New)}
		}, tally{verdicts: map[ledger.Verdict]int{ledger.New: 2, ledger.Seen: 1}, repeated: 1, faults: []string{
			"raw-ingest.demo/0/0 has 2 outputs",
		}}},
		"a key twice in clean": {func(e ends, s []sent) []*kgo.Record {
			return []*kgo.Record{e.committed(clean, &s[0], ledger.New), e.committed(clean, &s[1], ledger.New), e.committed(clean, &s[2], ledger.New)}
		}, tally{verdicts: map[ledger.Verdict]int{ledger.New: 3}, doubled: 1, faults: []string{
			"raw-ingest.demo/0/1 is NEW at clean.demo/0/1, should be SEEN",
			"acme:edifact edifact:a/b/1 is in clean 2 times: [raw-ingest.demo/0/0 raw-ingest.demo/0/1]",
		}}},
		"another payload, and a stranger": {func(e ends, s []sent) []*kgo.Record {
			return []*kgo.Record{altered(e.committed(clean, &s[0], ledger.New)), e.committed(duplicates, &s[1], ledger.Seen), e.committed(clean, &s[2], ledger.New), foreign}
		}, tally{verdicts: map[ledger.Verdict]int{ledger.New: 2, ledger.Seen: 1}, faults: []string{
			"raw-ingest.demo/0/0 has another payload at clean.demo/0/0",
			"clean.demo/0/0: not an output of the filter",
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := booked()
			require.Equal(t, 3, b.missing(0))
			for _, r := range c.outputs(ends{}, b.sent) {
				b.take(r)
			}
			c.want.in = 3
			got := b.count(0)
			require.Equal(t, c.want, got)
			require.Equal(t, len(got.faults) == 0, got.is(2, 1, 0, 0))
			require.Equal(t, got.lost, b.missing(0))
		})
	}
}

func TestBooksJudgeARange(t *testing.T) {
	t.Parallel()
	b, e := booked(), ends{}
	b.take(e.committed("clean.demo", &b.sent[2], ledger.New))
	require.Equal(t, 0, b.missing(2))
	got := b.count(2)
	require.True(t, got.is(1, 0, 0, 0))
	require.False(t, got.is(2, 0, 0, 0))
}
