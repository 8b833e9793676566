package setting

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Place is where a setting was written: a line of a file, or an environment
// variable (Line 0). The zero Place is nowhere: a default, or a key that was
// not written at all.
type Place struct {
	Name string // file as the user named it, or the environment variable
	Line int    // from 1
}

// String is "dedup.yaml:93", "DEDUP_KAFKA_BROKERS" or "".
func (p Place) String() string {
	if p.Line == 0 {
		return p.Name
	}
	return p.Name + ":" + strconv.Itoa(p.Line)
}

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	At    Place
	Path  string // the setting, e.g. flows[4].window; "" for the file itself
	Value string // quoted, or "" where there is none or it must not be shown
	Why   string // what is wrong, and what is allowed
}

// Error is one line: place, setting, value, reason; what is empty is left out.
func (p Problem) Error() string {
	parts := make([]string, 0, 4)
	for _, s := range [...]string{p.At.String(), p.Path, p.Value, p.Why} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems is everything that is wrong with a configuration: a user mends all
// of it before the next try, not one line per try.
type Problems []Problem

// Error is one line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted orders the problems as a reader meets them: the file from top to
// bottom, then the environment, then what was not written anywhere.
func (ps Problems) Sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(rank(a.At), rank(b.At)),
			cmp.Compare(a.At.Name, b.At.Name),
			cmp.Compare(a.At.Line, b.At.Line),
		)
	})
	return ps
}

func rank(p Place) int {
	switch {
	case p.Line > 0:
		return 0
	case p.Name != "":
		return 1
	default:
		return 2
	}
}
