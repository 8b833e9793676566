package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dedupledger/internal/devservices"
)

// filter is `dedup run` as a process of its own.
type filter struct {
	program string
	environ []string
	config  string
	log     string
	front   *front
	addr    string // of its own HTTP listener; another one after each start
	http    *http.Client
	child   *devservices.Child
}

// newFilter writes the filter's configuration. Its environment has no DEDUP_
// variables: one of them would win over the file, and the demo of somebody who
// works on production's configuration would run there.
func newFilter(folder, program string, environ []string, at *front, e *devservices.Embedded) (*filter, error) {
	f := &filter{
		program: program, front: at,
		environ: slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "DEDUP_") }),
		config:  filepath.Join(folder, "dedup.yaml"),
		log:     filepath.Join(folder, "filter.log"),
		http:    &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second},
	}
	// Strings of JSON are strings of YAML. The batches are half as large as by
	// default: with more of them the kills meet more states.
	text := fmt.Sprintf(`log: {level: info, format: text}
kafka: {brokers: [%q], group: %q, session_timeout: 6s}
processor: {sessions: %d, slot: "%d", batch_records: 1000, chunk_records: 250}
redis: {addrs: [%q]}
postgres: {url: %q}
`, e.KafkaAddr, group, sessions, slot, e.RedisAddr, e.Database.AppURL)
	if err := os.WriteFile(f.config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing the filter's configuration: %w", err)
	}
	return f, nil
}

func (f *filter) start() error {
	port, err := devservices.FreePort()
	if err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	f.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	environ := append(slices.Clone(f.environ), "DEDUP_HTTP_LISTEN="+f.addr)
	child, err := devservices.StartChildIn(environ, f.program, []string{"run", "-c", f.config}, f.log)
	if err != nil {
		return fmt.Errorf("starting the filter: %w", err)
	}
	f.child = child
	f.front.lead(f.addr)
	return nil
}

func (f *filter) pid() int { return f.child.PID() }

// alive is a context that ends when the filter does: nobody waits for the
// outputs of a process that is gone.
func (f *filter) alive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	child := f.child
	go func() {
		select {
		case <-child.Done():
			cancel(fmt.Errorf("the filter (pid %d) ended with exit code %d", child.PID(), child.ExitCode()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// stop ends it cleanly (SIGTERM).
func (f *filter) stop(ctx context.Context) error {
	if err := f.child.Stop(ctx); err != nil {
		return fmt.Errorf("stopping the filter: %w", err)
	}
	if code := f.child.ExitCode(); code != 0 {
		return fmt.Errorf("the filter (pid %d) ended with exit code %d after SIGTERM", f.pid(), code)
	}
	return nil
}

// kill ends it with SIGKILL.
func (f *filter) kill() error {
	if f.child == nil {
		return nil
	}
	if err := f.child.Kill(); err != nil {
		return fmt.Errorf("killing the filter: %w", err)
	}
	return nil
}

// awaitReady returns when the filter works on all partitions.
func (f *filter) awaitReady(ctx context.Context) error {
	ctx, cancel := f.alive(ctx)
	defer cancel()
	var state struct {
		Status  string   `json:"status"`
		Running []string `json:"running"`
	}
	err := await(ctx, func() (bool, error) {
		body, err := f.get(ctx, "/readyz")
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		state.Running = nil
		if err := json.Unmarshal(body, &state); err != nil {
			return false, fmt.Errorf("reading /readyz: %w", err)
		}
		return state.Status == "ready" && len(state.Running) == partitions, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the filter to work on %d partitions: %w", partitions, err)
	}
	return nil
}

// foreign is how many offsets of other tools the filter says it did not obey.
func (f *filter) foreign(ctx context.Context) (int, error) {
	body, err := f.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		rest, ok := strings.CutPrefix(line, `dedup_foreign_offsets_total{topic="`+rawTopic+`"} `)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if err != nil {
			return 0, fmt.Errorf("reading dedup_foreign_offsets_total: %w", err)
		}
		return int(n), nil
	}
	return 0, nil
}

func (f *filter) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.addr+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the filter for %s: %w", path, err)
	}
	answer, err := f.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the filter for %s: %w", path, err)
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the filter's %s: %w", path, err)
	}
	return body, nil
}
