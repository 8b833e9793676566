package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Level says how bad a finding is.
type Level string

// The levels, spelled as they are printed.
const (
	OK   Level = "ok"
	Warn Level = "warn" // something to know, or to mend before it matters
	Fail Level = "FAIL" // something does not work, or could lose or double a message
)

// Finding is one line of the report.
type Finding struct {
	Level  Level  `json:"level"`
	Area   string `json:"area"`
	Text   string `json:"text"`
	Repair string `json:"repair,omitempty"` // command or sentence
}

// Findings are a report, in the order of the areas.
type Findings []Finding

func (fs *Findings) add(level Level, area, repair, format string, args ...any) {
	*fs = append(*fs, Finding{Level: level, Area: area, Text: fmt.Sprintf(format, args...), Repair: repair})
}

// orOK is the findings, or one that all is well.
func (fs Findings) orOK(area, format string, args ...any) Findings {
	if len(fs) > 0 {
		return fs
	}
	fs.add(OK, area, "", format, args...)
	return fs
}

// Count is how many findings have the level.
func (fs Findings) Count(l Level) (n int) {
	for i := range fs {
		if fs[i].Level == l {
			n++
		}
	}
	return n
}

// Summary is the last line: "2 failures, 1 warning".
func (fs Findings) Summary() string {
	return counted(fs.Count(Fail), "failure") + ", " + counted(fs.Count(Warn), "warning")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Print writes the report for people.
func (fs Findings) Print(w io.Writer) error {
	const indent = "                 "
	var b strings.Builder
	for i := range fs {
		f := &fs[i]
		fmt.Fprintf(&b, "%-5s %-10s %s\n", f.Level, f.Area, f.Text)
		if f.Repair != "" {
			b.WriteString(indent + "repair: " + f.Repair + "\n")
		}
	}
	b.WriteString(fs.Summary() + "\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
