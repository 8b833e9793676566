package importer

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// States of an import, in dedup_action and in the report.
const (
	stateBegun       = "begun"
	stateDone        = "done"
	stateInterrupted = "interrupted"
	stateFailed      = "failed"
)

// Report is what became of the lines. Imported, Known, Expired, Future and Bad add
// up to Lines.
type Report struct {
	File      string  `json:"file"`
	SHA256    string  `json:"sha256,omitempty"` // of the file, where it was read to its end
	State     string  `json:"state"`
	DryRun    bool    `json:"dryRun"`
	Lines     int64   `json:"lines"` // read; blank ones and the header are none
	Imported  int64   `json:"imported"`
	Known     int64   `json:"known"`     // the ledger has a row of the key; left alone
	OtherHash int64   `json:"otherHash"` // of Known: with another payload hash
	Expired   int64   `json:"expired"`
	Future    int64   `json:"future"`
	Bad       int64   `json:"bad"`
	Opaque    int64   `json:"opaque"`           // keys that became hdr:...
	AtMost    bool    `json:"atMost,omitempty"` // Imported: a dry run tells lines of one key up to maxRepeats keys
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"` // lines
}

func (r *Report) took(d time.Duration) {
	r.Seconds = d.Seconds()
	if d > 0 {
		r.PerSecond = float64(r.Lines) / d.Seconds()
	}
}

// Print writes it for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d lines in %.1f s, %.0f/s\n", r.File, r.Lines, r.Seconds, r.PerSecond)
	row := func(name string, n int64, says string) { fmt.Fprintf(&b, "  %-9s %12d  %s\n", name, n, says) }
	row("imported", r.Imported, "their copies are duplicates from now on")
	row("known", r.Known, "the ledger has the key; left alone")
	if r.OtherHash > 0 {
		row("", r.OtherHash, "of them with another payload hash")
	}
	row("expired", r.Expired, "their windows are over; left out")
	row("future", r.Future, "left out")
	row("bad", r.Bad, "left out; the first ones are named on stderr")
	if r.Opaque > 0 {
		fmt.Fprintf(&b, "%d keys are none that an extractor makes: they became hdr:..., which copies have that bring the same header dedup-key\n", r.Opaque)
	}
	if r.AtMost {
		fmt.Fprintf(&b, "more than %d keys: of those behind, lines of one key are all counted as imported\n", maxRepeats)
	}
	if r.DryRun {
		b.WriteString("dry run: nothing was changed\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
