package demo

import (
	"fmt"
	"io"
	"strconv"
)

// transcript prints for people, and remembers whether a verdict was missed.
type transcript struct {
	out    io.Writer
	missed bool
}

func (t *transcript) line(format string, args ...any) {
	fmt.Fprintf(t.out, format+"\n", args...)
}

// faultsShown of a part that failed.
const faultsShown = 10

// verdict is PASS, or FAIL; why is printed by explain.
func (t *transcript) verdict(pass bool) string {
	if pass {
		return "PASS"
	}
	t.missed = true
	return "FAIL"
}

// explain names what is wrong, below the line with the verdict.
func (t *transcript) explain(faults []string) {
	for i, f := range faults {
		if i == faultsShown {
			t.line("   ... and %s more", thousands(len(faults)-i))
			return
		}
		t.line("   wrong: %s", f)
	}
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
