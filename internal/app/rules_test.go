package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"dedupledger/internal/app/config"
	"dedupledger/internal/rules"
	"dedupledger/ledger"
)

func configured(t *testing.T, text string) (*config.Config, *rules.Set, making) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dedup.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, _, err := config.Load(file, []string{"DEDUP_KAFKA_BROKERS=k:9092", "DEDUP_REDIS_ADDRS=r:6379", "DEDUP_POSTGRES_URL=postgres://u@h/d"})
	require.NoError(t, err)
	set, err := c.Rules()
	require.NoError(t, err)
	m, err := newMaking(c, set)
	require.NoError(t, err)
	return c, set, m
}

// TestWhyAProcessIsNotReady: it names the rule and the line of both.
func TestWhyAProcessIsNotReady(t *testing.T) {
	t.Parallel()
	_, _, old := configured(t, "flows:\n  - {match: 'acme:*', extractors: [header, edifact]}\n")
	_, _, own := configured(t, "# moved\nflows:\n  - {match: 'acme:*', extractors: [header, x12]}\n")
	_, _, renamed := configured(t, "topics: {header_names: {dedup-key: X-Id}}\nflows:\n  - {match: 'acme:*', extractors: [header, edifact]}\n")
	_, _, scope := configured(t, "topics: {scope_from: [header]}\nflows:\n  - {match: 'acme:*', extractors: [header, edifact]}\n")
	_, _, same := configured(t, "log: {level: debug}\n\nflows:\n  - {match: 'acme:*', extractors: [header, edifact], window: 9d}\n")
	active := old.rules()
	active.Since = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)

	require.Empty(t, same.refused(&active))
	why := own.refused(&active)
	require.Contains(t, why, "fingerprint "+own.fingerprint+" here, "+old.fingerprint+" active since 2026-11-30T14:00:00Z. flows[0] acme:* (")
	require.Contains(t, why, "dedup.yaml:3): extractors is header, x12 here and header, edifact in the active rules (")
	require.Contains(t, why, "dedup.yaml:2)")
	require.Contains(t, why, "dedup config activate")
	require.Contains(t, renamed.refused(&active), "dedup.yaml:1): header_names is dedup-key=x-id here and none in the active rules (default)")
	require.Contains(t, scope.refused(&active), "dedup.yaml:1): scope_from is header here and key in the active rules (default)")
	require.Contains(t, own.refused(&ledger.Rules{}), "no rules are recorded as having made them")
	require.Contains(t, own.refused(&ledger.Rules{Fingerprint: "x"}), "what the active ones say is not kept")
	active.Fingerprint = "another program's"
	require.Contains(t, old.refused(&active), "makes keys in another way")
}

func TestActivationCountsWhatIsNotFound(t *testing.T) {
	t.Parallel()
	_, was, _ := configured(t, "flows:\n  - {match: 'acme:*', extractors: [header, edifact, x12]}\n")
	_, set, _ := configured(t, "flows:\n  - {match: 'acme:*', extractors: [x12, header]}\n")
	a := Activation{Fingerprint: "new", Was: "old"}
	a.count(set, was, []ledger.LiveKeys{
		{Scope: "acme:as2", Flow: "as2", Scheme: "edifact", Count: 700},
		{Scope: "acme:as2", Flow: "as2", Scheme: "x12", Count: 20},
		{Scope: "acme:as2", Flow: "as2", Scheme: "hdr", Count: 3},
	})
	require.Equal(t, int64(723), a.Live)
	require.Equal(t, int64(700), a.Lost)
	require.Equal(t, int64(3), a.Unsure)
	var text strings.Builder
	require.NoError(t, a.Print(&text))
	require.Contains(t, text.String(), "723 live keys: 700 will not be found by these rules, 3 may get another key first\n")
	require.Regexp(t, `(?m)^  lost +700 +acme:as2 +flow as2 +edifact: +the chain x12, header has no extractor for them$`, text.String())
	require.Regexp(t, `(?m)^  unsure +3 +acme:as2 +flow as2 +hdr: +x12 is tried first now$`, text.String())
	text.Reset()
	require.NoError(t, (&Activation{Fingerprint: "x", Was: "x"}).Print(&text))
	require.Contains(t, text.String(), "are the active ones\n")
}

// TestMetricsOfOneFilterAfterTheOther: the next one's collectors have the names of
// the last one's.
func TestMetricsOfOneFilterAfterTheOther(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	for range 2 {
		l := &lifetime{Registerer: reg}
		l.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "dedup_x_total"}))
		require.Panics(t, func() { l.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "dedup_x_total"})) })
		var wg sync.WaitGroup // as sessions do
		for i := range 8 {
			wg.Go(func() {
				l.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: fmt.Sprintf("dedup_y%d_total", i)}))
			})
		}
		wg.Wait()
		all, err := reg.Gather()
		require.NoError(t, err)
		require.Len(t, all, 9)
		l.end()
	}
	all, err := reg.Gather()
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestWindowBelowRawRetention: a start tells the window, its line and how long raw is
// kept; nothing is said where they do not contradict each other.
func TestWindowBelowRawRetention(t *testing.T) {
	t.Parallel()
	said := func(text string) string {
		var log bytes.Buffer
		c, set, _ := configured(t, text)
		(&app{Options: Options{Config: c, Log: slog.New(slog.NewTextHandler(&log, nil))}}).warnWindows(set)
		return log.String()
	}
	const flows = "flows:\n  - {match: 'acme:*', window: 5d}\n  - {match: 'acme:as2', key: 'as2:*', window: 36h}\n"
	require.Regexp(t, `level=WARN msg="the shortest window is below raw retention" window=36h0m0s rule=\S+/dedup.yaml:3 raw_retention=72h0m0s\n$`, said(flows))
	require.Empty(t, said("topics: {create: {raw_retention: 36h}}\n"+flows))
}
