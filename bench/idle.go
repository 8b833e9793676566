package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"dedupledger/internal/devservices"
)

// What an idle filter is given: as many raw topics as a small hub has, each with
// its clean topic, duplicates and dead-letter.
const (
	idleRaw   = 5
	idleOurs  = 2*idleRaw + 2
	idleFor   = 60 * time.Second
	idleEvery = time.Second
)

// idleFigures are what a filter takes that has nothing to do.
type idleFigures struct {
	Topics     int     `json:"topics"` // in the cluster
	Raw        int     `json:"raw_topics"`
	Partitions int     `json:"raw_partitions"`
	Sessions   int     `json:"sessions"`
	Ready      float64 `json:"seconds_to_ready"`
	AtReady    float64 `json:"rss_mb_when_ready"`
	AtEnd      float64 `json:"rss_mb_at_end"`
	Peak       float64 `json:"rss_peak_mb"`
	CPU        float64 `json:"cpu_percent"` // of one core, from ready to the end
}

func (f *idleFigures) print(w io.Writer) {
	fmt.Fprintf(w, "%d topics in the cluster, %d of them raw with %d partitions, %d sessions, nothing to do for %s:\n"+
		"ready after %.1f s, then %.0f MB RSS, %.0f MB at the end, %.0f MB at most, %.1f %% of a core\n",
		f.Topics, f.Raw, f.Partitions, f.Sessions, idleFor, f.Ready, f.AtReady, f.AtEnd, f.Peak, f.CPU)
}

// idle runs `dedup run` among many topics without a message and watches its
// memory.
func (s *stage) idle(ctx context.Context) (f *idleFigures, err error) {
	set, err := s.prepareIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer s.drop(ctx, set.db)
	port, err := devservices.FreePort()
	if err != nil {
		return nil, err //nolint:wrapcheck // a sentence already
	}
	listen := "127.0.0.1:" + strconv.Itoa(port)
	began := time.Now()
	child, err := devservices.StartChild(s.binary, []string{"run", "-c", set.config}, []string{"DEDUP_HTTP_LISTEN=" + listen}, set.log)
	if err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	f = &idleFigures{Topics: s.o.idle, Raw: idleRaw, Partitions: idleRaw * partitions, Sessions: s.o.sessions}
	err = s.watchIdle(ctx, f, child, "http://"+listen+"/readyz", began)
	if err != nil {
		_ = child.Kill() // the error that counts is the first
		return nil, fmt.Errorf("%w; end of its log:\n%s", err, child.Log())
	}
	return f, child.Stop(ctx)
}

// prepareIdle fills the cluster with topics that are none of the filter's.
func (s *stage) prepareIdle(ctx context.Context) (*setting, error) {
	raw := make([]string, idleRaw)
	for i := range raw {
		raw[i] = fmt.Sprintf("raw-ingest.%s.%d", s.id, i)
	}
	set, err := s.prepareFor(ctx, s.id+"-idle", s.id+`\.\d`, partitions, s.create, raw...)
	if err != nil {
		return nil, err
	}
	names := make([]string, s.o.idle-idleOurs)
	for i := range names {
		names[i] = fmt.Sprintf("other.%s.%d", s.id, i)
	}
	say("making %d topics", len(names))
	for chunk := range slices.Chunk(names, 100) {
		made, err := s.admin.CreateTopics(ctx, 1, 1, nil, chunk...)
		if err = errors.Join(err, made.Error()); err != nil {
			return nil, fmt.Errorf("making topics: %w", err)
		}
	}
	return set, nil
}

// watchIdle waits until the filter is ready, and then looks on.
func (s *stage) watchIdle(ctx context.Context, f *idleFigures, child *devservices.Child, ready string, began time.Time) error {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	var first usage
	var since time.Time // ready
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-child.Done():
			return fmt.Errorf("the process ended with exit code %d", child.ExitCode())
		case <-t.C:
		}
		if since.IsZero() {
			if !answers(ctx, ready) {
				if time.Since(began) > stuckAfter {
					return fmt.Errorf("not ready after %s", stuckAfter)
				}
				continue
			}
			since, f.Ready = time.Now(), time.Since(began).Seconds()
			t.Reset(idleEvery)
		}
		u, err := usageOf(child.PID())
		if err != nil {
			return err
		}
		if f.AtReady == 0 {
			first, f.AtReady = u, float64(u.rss)/mb
		}
		f.AtEnd, f.Peak = float64(u.rss)/mb, float64(u.peak)/mb
		if took := time.Since(since); took > idleFor {
			f.CPU = 100 * (u.cpu - first.cpu).Seconds() / took.Seconds()
			return nil
		}
	}
}

func answers(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode == http.StatusOK
}

// runIdle is the whole of `go run ./bench -idle N`.
func (s *stage) runIdle(ctx context.Context) error {
	f, err := s.idle(ctx)
	if err != nil {
		return err
	}
	where := s.surroundings(ctx)
	if s.o.output == "json" {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"idle": f, "surroundings": where}) //nolint:wrapcheck // nothing to add
	}
	f.print(os.Stdout)
	fmt.Fprintf(os.Stdout, "%s\n%s\n", where.Machine, where.Services)
	return nil
}
