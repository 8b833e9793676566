package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dedupledger/internal/devservices"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

const (
	// readyWithin includes a rebalance after a killed predecessor.
	readyWithin = 90 * time.Second
	askEvery    = 50 * time.Millisecond
	shownLog    = 32 << 10
)

// filter is one process of the program: `dedup run`.
type filter struct {
	child *devservices.Child
	url   string // of its HTTP listener
	log   string
	http  *http.Client
}

// start runs a filter and waits until it is ready. Env (DEDUP_…=value) changes
// scalar settings of this process alone.
func (b *bundle) start(t *testing.T, slot int, env ...string) *filter {
	t.Helper()
	f := b.launch(t, slot, env...)
	f.awaitReady(t)
	return f
}

// launch runs a filter and does not wait.
func (b *bundle) launch(t *testing.T, slot int, env ...string) *filter {
	t.Helper()
	binary, err := shared.binary()
	require.NoError(t, err)
	return b.launchProgram(t, binary, slot, env...)
}

// launchProgram is launch with another build of the program.
func (b *bundle) launchProgram(t *testing.T, binary string, slot int, env ...string) *filter {
	t.Helper()
	port, err := devservices.FreePort()
	require.NoError(t, err)
	listen := "127.0.0.1:" + strconv.Itoa(port)
	env = append([]string{"DEDUP_HTTP_LISTEN=" + listen, "DEDUP_PROCESSOR_SLOT=" + strconv.Itoa(slot)}, env...)
	f := &filter{
		url:  "http://" + listen,
		log:  filepath.Join(b.dir, fmt.Sprintf("filter-%d-%s.log", slot, uuid.NewString()[:4])),
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second},
	}
	f.child, err = devservices.StartChildIn(environment(env), binary, []string{"run", "-c", b.config}, f.log)
	require.NoError(t, err)
	t.Cleanup(func() { f.cleanUp(t) })
	return f
}

// cleanUp ends what a test left, shows the log of a failed one, and fails a
// test whose filter had a data race.
func (f *filter) cleanUp(t *testing.T) {
	require.NoError(t, f.child.Continue())
	require.NoError(t, f.child.Kill())
	log, err := os.ReadFile(f.log)
	require.NoError(t, err)
	race := strings.Contains(string(log), "WARNING: DATA RACE")
	if t.Failed() || race {
		if len(log) > shownLog {
			log = log[len(log)-shownLog:]
		}
		t.Logf("end of the log of filter pid %d (%s):\n%s", f.child.PID(), f.log, log)
	}
	require.False(t, race, "the race detector found a race in the filter")
}

// awaitReady returns when /readyz is 200.
func (f *filter) awaitReady(t *testing.T) {
	t.Helper()
	last := "no answer"
	f.await(t, readyWithin, func() string { return "/readyz is not 200: " + last }, func() bool {
		code, body, err := f.get(t.Context(), "/readyz")
		if err != nil {
			last = err.Error()
			return false
		}
		last = fmt.Sprintf("%d %s", code, body)
		return code == http.StatusOK
	})
}

// awaitNotReady returns when /readyz answers and is not 200, with its reasons.
func (f *filter) awaitNotReady(t *testing.T) (reasons string) {
	t.Helper()
	f.await(t, readyWithin, func() string { return "/readyz stays 200" }, func() bool {
		code, body, err := f.get(t.Context(), "/readyz")
		reasons = body
		return err == nil && code != http.StatusOK
	})
	return reasons
}

// awaitMetric returns when the sum of the metric's series that have all the
// labels (`status="NEW"`) satisfies the condition.
func (f *filter) awaitMetric(t *testing.T, name string, labels []string, is func(float64) bool) {
	t.Helper()
	var last float64
	f.await(t, readyWithin, func() string { return fmt.Sprintf("%s%v is %v", name, labels, last) }, func() bool {
		v, err := f.metric(t.Context(), name, labels...)
		if err != nil {
			return false
		}
		last = v
		return is(v)
	})
}

// await asks until it is true, the process ends or time is up.
func (f *filter) await(t *testing.T, within time.Duration, what func() string, ask func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for !ask() {
		select {
		case <-f.child.Done():
			require.FailNow(t, "the filter ended", "exit code %d; %s", f.child.ExitCode(), what())
		case <-ctx.Done():
			require.FailNow(t, "waited too long", "%s after %s", what(), within)
		case <-tick.C:
		}
	}
}

// metric is the sum of the metric's series that have all the labels.
func (f *filter) metric(ctx context.Context, name string, labels ...string) (float64, error) {
	code, body, err := f.get(ctx, "/metrics")
	if err != nil || code != http.StatusOK {
		return 0, fmt.Errorf("reading metrics: status %d: %w", code, err)
	}
	return sumSeries(body, name, labels)
}

// sumSeries reads the Prometheus text format.
func sumSeries(text, name string, labels []string) (sum float64, err error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || (rest[0] != '{' && rest[0] != ' ') {
			continue
		}
		end := strings.LastIndexByte(rest, '}') + 1
		if !hasAll(rest[:end], labels) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[end:]), 64)
		if err != nil {
			return 0, fmt.Errorf("reading metric %s: %w", name, err)
		}
		sum += v
	}
	return sum, nil
}

func hasAll(series string, labels []string) bool {
	for _, l := range labels {
		if !strings.Contains(series, l) {
			return false
		}
	}
	return true
}

func (f *filter) get(ctx context.Context, path string) (code int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+path, nil)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s: %w", path, err)
	}
	answer, err := f.http.Do(r)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s: %w", path, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading %s: %w", path, err)
	}
	return answer.StatusCode, string(b), nil
}

// kill ends the filter with SIGKILL.
func (f *filter) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, f.child.Kill())
}

// term asks the filter to end (SIGTERM), waits, and requires exit 0.
func (f *filter) term(t *testing.T) {
	t.Helper()
	require.NoError(t, f.child.Stop(t.Context()))
	require.Zero(t, f.child.ExitCode(), "exit code after SIGTERM")
}

// freeze stops the filter where it is (SIGSTOP); thaw lets it go on.
func (f *filter) freeze(t *testing.T) {
	t.Helper()
	require.NoError(t, f.child.Pause())
}

func (f *filter) thaw(t *testing.T) {
	t.Helper()
	require.NoError(t, f.child.Continue())
}
