package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"dedupledger/internal/setting"
	"dedupledger/ledger"
)

// Ledger is what an import needs of PostgreSQL.
type Ledger interface {
	// Import may be given the same lines again after any error.
	Import(ctx context.Context, in *ledger.Import) ([]ledger.Imported, error)
	// Settle writes an action down; without changes nothing else.
	Settle(ctx context.Context, a ledger.Action, changes []ledger.Change) error
}

// Order is one import.
type Order struct {
	Terms
	In            io.Reader
	Size          int64 // of the file in bytes; 0: unknown
	Actor, Reason string
	DryRun        bool
	Ledger        Ledger
	Say           func(format string, args ...any) // how far it is
	Bad           func(setting.Problem)            // a line that cannot be read
}

const (
	kindImport = "import" // of dedup_action

	saysEvery = time.Second
	badShown  = 20
	badKept   = 200 // characters of a file's name that the ledger keeps
)

// Run reads the file to its end and enters what it can. The report tells what was
// done also where there is an error: what is entered stays, and the same file may be
// given again.
func Run(ctx context.Context, o *Order) (*Report, error) {
	sum := sha256.New()
	r, err := open(io.TeeReader(o.In, sum), &o.Terms)
	if err != nil {
		return nil, err
	}
	w := &work{Order: o, report: Report{File: o.Name, DryRun: o.DryRun}, began: time.Now()}
	if err := w.record(ctx, stateBegun); err != nil {
		return nil, err
	}
	err = w.all(ctx, r)
	switch {
	case err == nil:
		w.report.State, w.report.SHA256 = stateDone, hex.EncodeToString(sum.Sum(nil))
	case ctx.Err() != nil:
		w.report.State = stateInterrupted
		err = fmt.Errorf("interrupted after %d lines: import the file again, what is entered is known then", w.report.Lines)
	default:
		w.report.State = stateFailed
	}
	w.report.AtMost = w.repeats.full
	w.report.took(time.Since(w.began))
	if recorded := w.record(ctx, w.report.State); err == nil {
		err = recorded
	}
	return &w.report, err
}

// work is an import under way.
type work struct {
	*Order
	report  Report
	began   time.Time
	told    time.Time
	repeats repeats
}

// all enters chunk by chunk, in the file's order: of several lines of a key the
// first is entered. The next chunks are read meanwhile.
func (w *work) all(ctx context.Context, r *reader) error {
	reading, cancel := context.WithCancel(ctx)
	ahead := make(chan *chunk, 2)
	ended := make(chan struct{})
	go func() { defer close(ended); r.chunks(reading, ahead) }()
	// A reader that waits for a terminal or a pipe ends with the process.
	defer cancel()
	w.told = w.began
	for {
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's sentence takes its place
		case c, more := <-ahead:
			if !more {
				<-ended
				return ctx.Err() //nolint:wrapcheck // likewise
			}
			if err := w.enter(ctx, c); err != nil {
				return err
			}
		}
	}
}

func (w *work) enter(ctx context.Context, c *chunk) error {
	for _, p := range c.bad {
		w.bad(p)
	}
	if len(c.lines) > 0 {
		states, err := w.Ledger.Import(ctx, &ledger.Import{From: kept(w.Name), DryRun: w.DryRun, Lines: c.lines})
		if err != nil {
			return fmt.Errorf("%s, after %d lines: %w", w.Name, w.report.Lines, err)
		}
		w.count(c, states)
	}
	w.report.Lines += int64(c.read)
	w.report.Opaque += int64(c.opaque)
	if c.err != nil {
		return c.err
	}
	w.progress(c.bytes)
	return nil
}

func (w *work) count(c *chunk, states []ledger.Imported) {
	for i, s := range states {
		if w.DryRun {
			s = w.repeats.look(&c.lines[i], s)
		}
		switch s {
		case ledger.Entered:
			w.report.Imported++
		case ledger.Known:
			w.report.Known++
		case ledger.KnownOtherHash:
			w.report.Known++
			w.report.OtherHash++
		case ledger.Over:
			w.report.Expired++
		case ledger.Future:
			w.report.Future++
		default:
			month := c.lines[i].FirstSeenAt.Format("2006_01")
			w.bad(problem(w.Name, c.at[i], &fault{
				columnFirst, c.lines[i].FirstSeenAt.Format(time.RFC3339),
				"its month was taken out of the ledger: attach dedup_ledger_" + month + " again, or drop it",
			}))
		}
	}
}

func (w *work) bad(p setting.Problem) {
	if w.report.Bad++; w.report.Bad <= badShown {
		w.Bad(p)
	}
}

func (w *work) progress(bytes int64) {
	now := time.Now()
	if now.Sub(w.told) < saysEvery {
		return
	}
	w.told = now
	part := ""
	if w.Size > 0 {
		part = fmt.Sprintf(" %d%%,", min(100, 100*bytes/w.Size))
	}
	w.Say("import: %s:%s %d lines, %.0f/s", w.Name, part, w.report.Lines, float64(w.report.Lines)/now.Sub(w.began).Seconds())
}

// record writes down that it is begun, and how it ended: the first before any row
// goes in, so that a killed one has left a trace.
func (w *work) record(ctx context.Context, state string) error {
	if w.DryRun {
		return nil
	}
	detail := map[string]any{"state": state}
	if w.Window > 0 {
		detail["window"] = setting.FormatDuration(w.Window)
	}
	if state != stateBegun {
		detail["counts"] = w.report
	}
	a := ledger.Action{Actor: w.Actor, Kind: kindImport, Place: kept(w.Name), Reason: w.Reason, Detail: detail}
	if err := w.Ledger.Settle(ctx, a, nil); err != nil {
		return fmt.Errorf("recording the import: %w", err)
	}
	return nil
}
