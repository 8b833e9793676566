package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

func TestMessagesAreWhatIsSaid(t *testing.T) {
	t.Parallel()
	keyer, err := newKeyer()
	require.NoError(t, err)
	all := flows()
	require.Len(t, all, scopes)
	taken := map[int32]bool{}
	for _, f := range all {
		require.False(t, taken[f.partition], "scopes share partition %d", f.partition)
		taken[f.partition] = true
	}
	const messages = 3 * resendAfter
	first := map[ledger.Key]int64{}
	again := int64(0)
	for n := range int64(messages) {
		index, offset := placed(n)
		r := registration(&all[index], n, offset, keyer)
		require.Len(t, r.Keys, 1, "message %d: %s", n, r.Reason)
		require.Equal(t, int64(valueSize), r.Bytes, "message %d", n)
		require.Equal(t, all[index].scope, r.Keys[0].Scope)
		if at, known := first[r.Keys[0]]; known {
			again++
			require.Equal(t, original(n), at, "message %d is a resend of another", n)
			continue
		}
		require.Equal(t, n, original(n), "message %d is a resend of what was not sent", n)
		first[r.Keys[0]] = n
		if n == resendAfter+resendEvery {
			require.Equal(t, again, resends(n+1))
		}
	}
	require.Equal(t, again, resends(messages))
	require.Zero(t, resends(resendAfter))
}

func TestFigures(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	at := func(seconds int, done int64, cpu time.Duration, rss int64) sample {
		return sample{start.Add(time.Duration(seconds) * time.Second), done, usage{cpu, rss * mb, 180 * mb}}
	}
	f := figuresOf([]sample{
		at(10, 1000, time.Second, 90), at(11, 10_000, 2*time.Second, 100),
		at(12, 25_000, 3*time.Second, 110), at(14, 41_000, 3800*time.Millisecond, 120),
	})
	require.Equal(t, int64(40_000), f.Messages)
	require.InDelta(t, 10_000, f.PerSecond, 0.01)
	require.InDelta(t, 70, f.CPU, 0.01)
	require.InDelta(t, 180, f.Peak, 0.01)
	require.InDeltaSlice(t, []float64{110, 110, 120, 120}, f.Resident, 0.01)
	require.Zero(t, figuresOf([]sample{at(1, 5, 0, 1)}).PerSecond, "one sample is no speed")
}

func TestReadsProc(t *testing.T) {
	t.Parallel()
	cpu, err := parseStat([]byte("17 (a (b) c) S 1 17 17 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 1 2 3"))
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, cpu)
	_, err = parseStat([]byte("17 (a) S 1"))
	require.Error(t, err)
	n, err := parseStatus("Name:\tbench\nVmHWM:\t  2048 kB\n", "VmHWM")
	require.NoError(t, err)
	require.Equal(t, int64(2*mb), n)
	_, err = parseStatus("Name:\tbench\n", "VmRSS")
	require.Error(t, err)
	u, err := usageOf(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, u.rss)
}

func measured() *report {
	o := &options{messages: 100_000, sessions: 4, only: []string{"outage"}, rate: 500, away: time.Minute}
	r := newReport(o, surroundings{Services: "services: kafka", Postgres: "port 1", Machine: "2 cores"})
	for _, x := range []float64{1, 3, 2} {
		r.Runs = append(r.Runs, run{
			titleFilter:      {PerSecond: 10_000 * x, CPU: 30, Peak: 150, Resident: []float64{100, 110, 120, 125}},
			titleTLS:         {PerSecond: 7_500 * x},
			titleRegister(1): {PerSecond: 20_000 * x},
			titleRegister(4): {PerSecond: 40_000 * x},
			titleInsert:      {PerSecond: 30_000 * x},
			titleOutage: {Peak: 100 * x, Outage: &outageFigures{
				Normal: stretchFigures{PerSecond: 9_000 * x}, Killed: stretchFigures{Ratio: 0.5 * x, Pause: x},
				First: 2 * x, CaughtUp: stretchFigures{Ratio: 0.3 * x},
			}},
		})
	}
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	require.NoError(t, measured().print(&text, "text"))
	for _, want := range []string{
		`filter, msg/s +10000 +30000 +20000 +median +20000 +≥ 20000 met`,
		`filter, µs CPU/msg .*median +30.0 +≤ 20 MISSED`,
		`filter, RSS at 100 % / at 25 % .*median +1.25`,
		`filter / register, 1 connection .*median +0.50 +≥ 0.5 met`,
		`filter / register, 4 connections .*median +0.25`,
		`filter over TLS / filter +.*median +0.75 +≥ 0.75 met`,
		`register / insert, 1 connection .*median +0.67 +≥ 0.5 met`,
		`run 3: MB RSS at 25/50/75/100 %: 100/110/120/125`,
		`normal, msg/s +9000 +27000 +18000 +median +18000`,
		`Redis killed / normal +0.50 +1.50 +1.00 +median +1.00 +≥ 0.8 met`,
		`catching up / normal +0.30 +0.90 +0.60 +median +0.60 +≥ 0.8 MISSED`,
		`longest pause, Redis killed, s +1.00 +3.00 +2.00 +median +2.00 +≤ 1 MISSED`,
		`PostgreSQL back, first commit, s .*median +4.00 +≤ 5 met`,
		`outage, MB RSS at most .*median +200 +≤ 300 met`,
		`outage: 8 partitions with a backlog, 500 messages a second more all along; stretches of 8333 messages; PostgreSQL away for 1m0s`,
		`9.5 % resends, 12 partitions, 8 scopes; 4 sessions`,
		disturbed,
	} {
		require.Regexp(t, want, text.String())
	}
	require.NotContains(t, text.String(), "copy", "what was not measured is not shown")

	text.Reset()
	require.NoError(t, measured().print(&text, "json"))
	var back report
	require.NoError(t, json.Unmarshal(text.Bytes(), &back))
	require.Len(t, back.Runs, 3)
	require.Equal(t, "filter, msg/s", back.Rows[0].Name)
	require.True(t, *back.Rows[0].Met)
}

func TestMedian(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-messages", "50000", "-repeat", "1", "-phases", "filter,copy"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, &options{messages: 50_000, repeat: 1, sessions: 4, rate: 2000, away: time.Minute, only: []string{"filter", "copy"}, output: "text"}, o)
	for _, args := range [][]string{
		{"-messages", "10"},
		{"-repeat", "0"},
		{"-sessions", "9"},
		{"-o", "xml"},
		{"-phases", "other"},
		{"more"},
		{"-unknown"},
		{"-rate", "0"},
		{"-away", "0"},
		{"-away", "2h"},
	} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			t.Parallel()
			_, err := parse(args, io.Discard)
			require.Error(t, err)
		})
	}
}
