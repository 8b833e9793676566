package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/tail"
)

func tailedRecord() *tail.Record {
	return &tail.Record{Size: 30, Record: &kgo.Record{
		Topic: "duplicates", Partition: 3, Offset: 1290, Key: []byte("acme:as2"), Timestamp: time.UnixMilli(1000),
		Headers: []kgo.RecordHeader{{Key: "dedup-status", Value: []byte("SEEN")}, {Key: "x", Value: []byte("a\x1b[2J\n\xff")}, {Key: "null"}},
		Value:   []byte("UNB+1'\r\n\x1b]0;x\x07é\n"),
	}}
}

// TestTailText: nothing of a record reaches the terminal as a control character
// but the lines of its payload.
func TestTailText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, showText(&out, tailedRecord()))
	require.Equal(t, `duplicates/3/1290  1970-01-01T00:00:01.000Z  key acme:as2  value 30 bytes
  dedup-status: SEEN
  x: a\x1b[2J\n\xff
  null: null
  | UNB+1'\r
  | \x1b]0;x\aé
  | 
  (13 bytes more)
`, out.String())
}

func TestTailJSON(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, showJSON(&out, tailedRecord()))
	require.Equal(t, 1, strings.Count(out.String(), "\n"), "one line")
	require.JSONEq(t, `{"place":"duplicates/3/1290","timestamp":"1970-01-01T00:00:01.000Z","key":"acme:as2","headers":[
		{"name":"dedup-status","value":"SEEN"},{"name":"x","value":null,"valueBase64":"YRtbMkoK/w=="},{"name":"null","value":null}],
		"size":30,"payload":"UNB+1'\r\n\u001b]0;x\u0007é\n"}`, out.String())
}
